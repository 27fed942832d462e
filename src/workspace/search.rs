//! Literal search through files, capital or small, with lines around each hit.

use crate::domain::refusal::Refusal;
use crate::domain::say::Say;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub hits: u32,
    pub context_lines: u32,
}

#[derive(Debug)]
pub struct Hits {
    query: String,
    blocks: Vec<String>,
    more: bool,
}

pub fn search<'a>(files: impl Iterator<Item = (&'a str, &'a str)>, query: &str, folder: Option<&str>, limits: &Limits) -> Result<Hits, Refusal> {
    let wanted = query.to_lowercase();
    if wanted.trim().is_empty() {
        return Err(Refusal::new("tool.invalid_arguments", "workspace.search_empty"));
    }
    let prefix = folder.map(|folder| format!("{folder}/"));
    let mut hits = Hits { query: query.to_owned(), blocks: Vec::new(), more: false };
    for (path, text) in files {
        if folder.is_some_and(|folder| path != folder) && prefix.as_ref().is_some_and(|prefix| !path.starts_with(prefix.as_str())) {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for (index, _) in lines.iter().enumerate().filter(|(_, line)| line.to_lowercase().contains(&wanted)) {
            if hits.blocks.len() as u32 >= limits.hits {
                hits.more = true;
                return Ok(hits);
            }
            hits.blocks.push(block(path, &lines, index, limits.context_lines as usize));
        }
    }
    Ok(hits)
}

fn block(path: &str, lines: &[&str], index: usize, context: usize) -> String {
    let from = index.saturating_sub(context);
    let shown = lines.iter().enumerate().skip(from).take(index - from + context + 1);
    let rows: Vec<String> = shown.map(|(at, line)| format!("{}{}\t{}", if at == index { ">" } else { " " }, at + 1, line.chars().take(400).collect::<String>())).collect();
    format!("{path}:{}\n{}", index + 1, rows.join("\n"))
}

impl Hits {
    pub fn count(&self) -> usize {
        self.blocks.len()
    }

    pub fn render(&self, say: &dyn Say) -> String {
        if self.blocks.is_empty() {
            return say.say("workspace.search_none", &[("query", &self.query)]);
        }
        let mut text = self.blocks.join("\n\n");
        if self.more {
            text.push_str("\n\n");
            text.push_str(&say.say("workspace.search_more", &[("count", &self.blocks.len().to_string())]));
        }
        text
    }
}
