//! Paths within the workspace: normal form, roots, and who may go where (rules W1, B4).

use crate::domain::refusal::Refusal;

/// The roots that models may be given.
pub const ROOTS: [&str; 5] = ["output", "scratch", "plan", "summaries", "persist"];

/// `./a//b` → `a/b`; escapes, absolute paths, drives, NUL and nothing at all are refused.
pub fn normalise(raw: &str) -> Result<String, Refusal> {
    let refuse = || Refusal::new("workspace.invalid_path", "workspace.invalid_path").arg("path", raw.escape_debug().collect::<String>());
    let text = raw.trim();
    let drive = text.as_bytes().get(1) == Some(&b':') && text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    if text.starts_with(['/', '\\']) || drive || text.chars().any(char::is_control) {
        return Err(refuse());
    }
    let text = text.replace('\\', "/");
    let mut parts = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(refuse()),
            part => parts.push(part),
        }
    }
    if parts.is_empty() { Err(refuse()) } else { Ok(parts.join("/")) }
}

/// The root that a normal path lies under, or is.
pub fn root_of(path: &str) -> Option<&str> {
    let root = path.split('/').next()?;
    ROOTS.contains(&root).then_some(root)
}

/// The roots that one agent may see and write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub visible: Vec<String>,
    pub writable: Vec<String>,
}

impl Access {
    pub fn check_visible(&self, path: &str) -> Result<(), Refusal> {
        let seen = root_of(path).is_some_and(|root| self.visible.iter().any(|visible| visible == root));
        if seen { Ok(()) } else { Err(Refusal::new("workspace.path_not_visible", "workspace.path_not_visible").arg("path", path).arg("roots", folders(&self.visible))) }
    }

    /// A file under a writable root; the root itself is a folder and cannot be written.
    pub fn check_writable(&self, path: &str) -> Result<(), Refusal> {
        let root = root_of(path).filter(|root| self.writable.iter().any(|writable| writable == root));
        match root {
            Some(root) if root.len() < path.len() => Ok(()),
            _ => Err(Refusal::new("workspace.path_not_writable", "workspace.path_not_writable").arg("path", path).arg("roots", folders(&self.writable))),
        }
    }
}

fn folders(roots: &[String]) -> String {
    if roots.is_empty() { "-".to_owned() } else { roots.iter().map(|root| format!("{root}/")).collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_one_normal_form() {
        assert_eq!(normalise("output/./a//b.md").as_deref(), Ok("output/a/b.md"));
        assert_eq!(normalise("output\\a.md").as_deref(), Ok("output/a.md"));
        for escape in ["", ".", "../a.md", "/etc/passwd", "C:\\a.md", "output/../../a.md", "a\0b", "\\\\share\\a", "a\nb"] {
            assert_eq!(normalise(escape).map_err(|refusal| refusal.code), Err("workspace.invalid_path"), "{escape:?}");
        }
    }

    #[test]
    fn roots_are_judged_by_whole_segments() {
        let access = Access { visible: vec!["output".into(), "persist".into()], writable: vec!["output".into()] };
        assert!(access.check_visible("output/a.md").is_ok() && access.check_visible("persist").is_ok());
        assert!(access.check_visible("outputs/a.md").is_err() && access.check_visible("scratch/a.md").is_err());
        assert!(access.check_writable("output/a.md").is_ok());
        assert!(access.check_writable("output").is_err() && access.check_writable("persist/a.md").is_err());
    }
}
