//! Something that can say a text of the locale; lets a room speak without knowing who renders.

pub trait Say {
    /// Fills `{name}` in the text under `key`.
    fn say(&self, key: &str, args: &[(&str, &str)]) -> String;
}
