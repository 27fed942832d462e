//! Texts and JSON documents as the journal keeps them: small ones in the line, large ones once, by SHA-256.
//! It knows sizes and hashes, not what the texts mean.

use std::rc::Rc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::domain::ids::sha256_hex;

/// Texts above this many UTF-8 bytes are kept as blobs (rule F3).
pub const BLOB_ABOVE_BYTES: usize = 4096;

/// Something that may stand in a line as `{"sha256": …}`.
pub trait Blob {
    /// Hash and text, where this is kept apart from its line.
    fn blob(&self) -> Option<(&Rc<str>, &Rc<str>)>;
    /// Puts the text behind a reference read from a line; false when the text is not to be had.
    fn resolve(&mut self, find: &dyn Fn(&str) -> Option<Rc<str>>) -> bool;
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Stored {
    text: Rc<str>,
    hash: Option<Rc<str>>,
    missing: bool,
}

impl Stored {
    fn new(text: Rc<str>, apart: bool) -> Self {
        let hash = apart.then(|| sha256_hex(text.as_bytes()).into());
        Self { text, hash, missing: false }
    }

    fn reference(hash: String) -> Self {
        Self { text: "".into(), hash: Some(hash.into()), missing: true }
    }

    fn resolve(&mut self, find: &dyn Fn(&str) -> Option<Rc<str>>) -> bool {
        if let (true, Some(hash)) = (self.missing, &self.hash) {
            let Some(text) = find(hash) else { return false };
            self.text = text;
            self.missing = false;
        }
        true
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    sha256: String,
}

fn reference(hash: &str) -> Reference {
    Reference { sha256: hash.to_owned() }
}

/// A text field of an event.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Text(Stored);

impl Text {
    pub fn new(text: impl Into<Rc<str>>) -> Self {
        let text = text.into();
        let apart = text.len() > BLOB_ABOVE_BYTES;
        Self(Stored::new(text, apart))
    }

    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    pub fn shared(&self) -> Rc<str> {
        self.0.text.clone()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl Blob for Text {
    fn blob(&self) -> Option<(&Rc<str>, &Rc<str>)> {
        self.0.hash.as_ref().map(|hash| (hash, &self.0.text))
    }
    fn resolve(&mut self, find: &dyn Fn(&str) -> Option<Rc<str>>) -> bool {
        self.0.resolve(find)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.hash {
            Some(hash) => reference(hash).serialize(serializer),
            None => serializer.serialize_str(&self.0.text),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let stored = match serde_json::from_str::<Reference>(raw.get()) {
            Ok(found) => Stored::reference(found.sha256),
            Err(_) => Stored::new(serde_json::from_str::<String>(raw.get()).map_err(serde::de::Error::custom)?.into(), false),
        };
        Ok(Self(stored))
    }
}

/// A JSON-valued field of an event, kept as its JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doc(Stored);

impl Default for Doc {
    fn default() -> Self {
        Self::null()
    }
}

impl Doc {
    /// `json` must be JSON text; a document that could be mistaken for a reference is always a blob.
    pub fn from_json(json: impl Into<Rc<str>>) -> Self {
        let json = json.into();
        let apart = json.len() > BLOB_ABOVE_BYTES || serde_json::from_str::<Reference>(&json).is_ok();
        Self(Stored::new(json, apart))
    }

    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        Self::from_json(serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()))
    }

    /// A document for what is sent rather than recorded: it never stands apart.
    pub fn of_inline<T: Serialize + ?Sized>(value: &T) -> Self {
        let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        Self(Stored::new(json.into(), false))
    }

    pub fn inline(&self) -> Self {
        Self(Stored::new(self.0.text.clone(), false))
    }

    pub fn null() -> Self {
        Self(Stored::new("null".into(), false))
    }

    pub fn is_null(&self) -> bool {
        &*self.0.text == "null"
    }

    pub fn json(&self) -> &str {
        &self.0.text
    }

    pub fn shared(&self) -> Rc<str> {
        self.0.text.clone()
    }

    pub fn parse<T: DeserializeOwned + Default>(&self) -> T {
        serde_json::from_str(&self.0.text).unwrap_or_default()
    }
}

impl Blob for Doc {
    fn blob(&self) -> Option<(&Rc<str>, &Rc<str>)> {
        self.0.hash.as_ref().map(|hash| (hash, &self.0.text))
    }
    fn resolve(&mut self, find: &dyn Fn(&str) -> Option<Rc<str>>) -> bool {
        self.0.resolve(find)
    }
}

impl<T: Blob> Blob for Option<T> {
    fn blob(&self) -> Option<(&Rc<str>, &Rc<str>)> {
        self.as_ref().and_then(Blob::blob)
    }
    fn resolve(&mut self, find: &dyn Fn(&str) -> Option<Rc<str>>) -> bool {
        self.as_mut().is_none_or(|blob| blob.resolve(find))
    }
}

impl Serialize for Doc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.hash {
            Some(hash) => reference(hash).serialize(serializer),
            None => raw(&self.0.text).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Doc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(match serde_json::from_str::<Reference>(raw.get()) {
            Ok(found) => Stored::reference(found.sha256),
            Err(_) => Stored::new(raw.get().into(), false),
        }))
    }
}

/// JSON text as a value to be written as it stands.
pub fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_texts_stand_apart_and_come_back() {
        let long = "字".repeat(2000);
        let text = Text::new(long.as_str());
        let line = serde_json::to_string(&text).expect("json");
        assert!(line.starts_with("{\"sha256\":\""));
        let mut back: Text = serde_json::from_str(&line).expect("a reference");
        assert!(!back.resolve(&|_| None), "an absent blob is noticed");
        assert!(back.resolve(&|_| Some(long.as_str().into())));
        assert_eq!(back, text);
        let small: Text = serde_json::from_str("\"a\\nb\"").expect("text");
        assert_eq!(small.as_str(), "a\nb");
    }

    #[test]
    fn data_that_looks_like_a_reference_is_data() {
        let doc = Doc::of(&serde_json::json!({ "sha256": "mine" }));
        let (hash, text) = doc.blob().expect("kept apart");
        let mut back: Doc = serde_json::from_str(&serde_json::to_string(&doc).expect("json")).expect("doc");
        assert_eq!(back.blob().expect("reference").0, hash);
        assert!(back.resolve(&|_| Some(text.clone())));
        assert_eq!(back.json(), "{\"sha256\":\"mine\"}");
    }
}
