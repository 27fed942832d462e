//! English: one table a room.

mod agents;
mod brief;
mod prompt;
mod results;
mod tools;
mod turns;
mod workspace;

const TABLES: [&[(&str, &str)]; 7] = [agents::TEXTS, brief::TEXTS, prompt::TEXTS, results::TEXTS, tools::TEXTS, turns::TEXTS, workspace::TEXTS];

pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLES.iter().flat_map(|table| table.iter().copied())
}

pub fn find(key: &str) -> Option<&'static str> {
    let chapter = key.split('.').next().unwrap_or_default();
    let table = TABLES.iter().find(|table| table.first().is_some_and(|(first, _)| first.split('.').next() == Some(chapter)))?;
    table.iter().find(|(known, _)| *known == key).map(|(_, text)| *text)
}
