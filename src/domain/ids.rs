//! Identifiers. Everything but the run's own id is a function of recorded facts: the run id, a kind and an
//! ordinal. It knows no randomness; the boundary draws a run id and hands it in.

use sha2::{Digest, Sha256};

const HEX: &[u8; 16] = b"0123456789abcdef";

pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(HEX[(byte >> 4) as usize] as char);
        text.push(HEX[(byte & 15) as usize] as char);
    }
    text
}

pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(bytes))
}

/// What an id names; its prefix is part of the id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdKind {
    Invocation,
    Task,
    Handoff,
    Event,
    Commit,
    Guidance,
    Assembly,
}

impl IdKind {
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Invocation => "inv",
            Self::Task => "task",
            Self::Handoff => "handoff",
            Self::Event => "evt",
            Self::Commit => "commit",
            Self::Guidance => "guidance",
            Self::Assembly => "prompt_assembly",
        }
    }
}

/// `<prefix>_<24 hex of a hash><8 hex of the ordinal>`: unique across runs, and its ordinal can be read back.
pub fn derive(run_id: &str, kind: IdKind, ordinal: u32) -> String {
    let mut hasher = Sha256::new();
    hasher.update(run_id.as_bytes());
    hasher.update(kind.prefix().as_bytes());
    hasher.update(ordinal.to_be_bytes());
    let hash: [u8; 32] = hasher.finalize().into();
    let mut id = String::with_capacity(kind.prefix().len() + 33);
    id.push_str(kind.prefix());
    id.push('_');
    id.push_str(&hex(&hash[..12]));
    id.push_str(&hex(&ordinal.to_be_bytes()));
    id
}

/// The ordinal that `derive` put into an id; whether the id really is one of this run, the caller compares.
pub fn ordinal(id: &str) -> Option<u32> {
    let tail = id.get(id.len().checked_sub(8)?..)?;
    u32::from_str_radix(tail, 16).ok()
}

/// `run_<32 hex>` out of 16 random bytes, marked as a version 4 UUID.
pub fn run_id(mut random: [u8; 16]) -> String {
    random[6] = (random[6] & 0x0f) | 0x40;
    random[8] = (random[8] & 0x3f) | 0x80;
    format!("run_{}", hex(&random))
}

/// `run_` and 32 lower-case hex digits: what a run id given from outside must look like.
pub fn is_run_id(text: &str) -> bool {
    text.strip_prefix("run_")
        .is_some_and(|hex| hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_their_ordinal() {
        let id = derive("run_1", IdKind::Handoff, 77);
        assert_eq!(id.len(), "handoff_".len() + 32);
        assert_eq!(ordinal(&id), Some(77));
        assert_ne!(id, derive("run_2", IdKind::Handoff, 77));
        assert!(is_run_id(&run_id([255; 16])));
        assert_eq!(ordinal("é"), None);
    }
}
