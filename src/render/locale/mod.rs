//! The texts of a language. English is compiled in; other languages come as data with the same keys.

pub mod en;

use std::collections::BTreeMap;

use crate::domain::say::Say;

#[derive(Clone, Debug)]
pub struct Locale {
    tag: String,
    pack: Option<BTreeMap<String, String>>,
}

impl Locale {
    pub fn english() -> Self {
        Self { tag: "en".to_owned(), pack: None }
    }

    /// A language as data: a JSON object of all keys, each text with the placeholders of the English one.
    pub fn from_pack(tag: &str, json: &str) -> Result<Self, String> {
        let pack: BTreeMap<String, String> = serde_json::from_str(json).map_err(|error| format!("the pack cannot be read: {error}"))?;
        for (key, english) in en::all() {
            let text = pack.get(key).ok_or_else(|| format!("the pack lacks the text {key}"))?;
            if placeholders(text) != placeholders(english) {
                return Err(format!("the text {key} must have the placeholders {}", placeholders(english).join(", ")));
            }
        }
        Ok(Self { tag: tag.to_owned(), pack: Some(pack) })
    }

    pub fn tag(&self) -> &str {
        &self.tag
    }

    fn text<'a>(&'a self, key: &'a str) -> &'a str {
        let packed = self.pack.as_ref().and_then(|pack| pack.get(key)).map(String::as_str);
        packed.or_else(|| en::find(key)).unwrap_or(key)
    }
}

impl Say for Locale {
    fn say(&self, key: &str, args: &[(&str, &str)]) -> String {
        fill(self.text(key), args)
    }
}

/// Fills `{name}` in one pass: what is filled in is never read again.
fn fill(text: &str, args: &[(&str, &str)]) -> String {
    let mut result = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, after) = rest.split_at(open);
        result.push_str(before);
        let name = after.find('}').and_then(|close| after.get(1..close));
        match name.and_then(|name| args.iter().find(|(arg, _)| *arg == name)) {
            Some((name, value)) => {
                result.push_str(value);
                rest = after.get(name.len() + 2..).unwrap_or_default();
            }
            None => {
                result.push('{');
                rest = after.get(1..).unwrap_or_default();
            }
        }
    }
    result.push_str(rest);
    result
}

/// The names between braces, sorted, each once.
pub fn placeholders(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = text.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name)).filter(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic())).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_filled_in_once() {
        assert_eq!(fill("a {x} {y} {z", &[("x", "{y}"), ("y", "2")]), "a {y} 2 {z");
        assert_eq!(placeholders("{b} {a} {b} { no }"), ["a", "b"]);
    }

    #[test]
    fn keys_are_unique() {
        let mut keys: Vec<&str> = en::all().map(|(key, _)| key).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
