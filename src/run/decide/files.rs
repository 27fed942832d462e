//! The workspace tools, run by the core itself: files live in the journal (rule W1).

use std::rc::Rc;

use serde_json::{Value, json};

use crate::domain::ids::sha256_hex;
use crate::domain::refusal::Refusal;
use crate::journal::event::*;
use crate::journal::{Doc, Event};
use crate::run::batch::{Batch, Outcome};
use crate::run::effect::CallPlace;
use crate::run::state::*;
use crate::tools::validate::Checked;
use crate::tools::{CoreTool, args};
use crate::workspace::{self, Access, Knowledge, apply_edits, count, list, patch, paths, read, search};

type Done = Result<Outcome, Refusal>;

pub fn run(batch: &mut Batch, place: CallPlace, tool: CoreTool, checked: &Checked) -> Done {
    match tool {
        CoreTool::ReadFile => read_file(batch, place, &args::Read::of(checked)?),
        CoreTool::WriteFile => write_file(batch, place, &args::Write::of(checked)?),
        CoreTool::ApplyPatch => apply_patch(batch, place, &args::Patch::of(checked)?),
        CoreTool::ListFiles => list_files(batch, place, &args::List::of(checked)?),
        CoreTool::SearchFiles => search_files(batch, place, &args::Search::of(checked)?),
        _ => Err(Refusal::new("tool.unknown", "turns.tool_unknown").arg("tool", tool.alias()).arg("tools", "")),
    }
}

/// Where an agent may look and write.
pub fn access(batch: &Batch, ordinal: Ordinal) -> Access {
    batch.work(ordinal).map(|work| work.profile.access()).unwrap_or_default()
}

fn visible_file(batch: &Batch, ordinal: Ordinal, raw: &str) -> Result<(String, Rc<File>), Refusal> {
    let path = paths::normalise(raw)?;
    access(batch, ordinal).check_visible(&path)?;
    let file = batch.state.files.get(path.as_str()).cloned();
    file.map(|file| (path.clone(), file)).ok_or_else(|| missing(batch, &path))
}

pub fn missing(batch: &Batch, path: &str) -> Refusal {
    let folder = format!("{path}/");
    if batch.state.files.iter().any(|(known, _)| known.starts_with(&folder)) {
        return Refusal::new("workspace.path_is_directory", "workspace.path_is_directory").arg("path", path);
    }
    Refusal::new("workspace.file_not_found", "workspace.file_not_found").arg("path", path)
}

fn known(batch: &Batch, ordinal: Ordinal, path: &str) -> Option<Rc<Knowledge>> {
    batch.work(ordinal)?.knowledge.get(path).cloned()
}

fn read_file(batch: &mut Batch, place: CallPlace, args: &args::Read) -> Done {
    let (path, file) = visible_file(batch, place.invocation, &args.path)?;
    let view = read::view(&path, &file.text, &args.range)?;
    let before = known(batch, place.invocation, &path);
    let knowledge = Knowledge::after_read(before.as_deref(), file.version, &view.covered);
    let invocation_id = batch.invocation_id(place.invocation);
    batch.emit(Event::FileRead(FileRead { invocation_id, path: path.as_str().into(), knowledge: Doc::of(&knowledge) }));
    Ok(Outcome::ok(view.content, json!({ "path": path, "chars": count::chars(&file.text), "sha256": &*file.sha256 })).with_refs(vec![path]))
}

fn write_file(batch: &mut Batch, place: CallPlace, args: &args::Write) -> Done {
    let path = paths::normalise(&args.path)?;
    access(batch, place.invocation).check_writable(&path)?;
    let folder = format!("{path}/");
    if batch.state.files.iter().any(|(known, _)| known.starts_with(&folder)) {
        return Err(Refusal::new("workspace.path_is_directory", "workspace.path_is_directory").arg("path", path));
    }
    if let Some(file) = batch.state.files.get(path.as_str())
        && args.mode == WriteMode::Replace
    {
        workspace::check_overwrite(known(batch, place.invocation, &path).as_deref(), file.version, &path)?;
    }
    let (chars, words) = write(batch, Some(place.invocation), &path, &args.content, args.mode)?;
    let key = if args.mode == WriteMode::Append { "workspace.appended" } else { "workspace.wrote" };
    let content = batch.say(key, &[("path", &path), ("chars", &chars.to_string()), ("words", &words.to_string())]);
    let sha256 = batch.state.files.get(path.as_str()).map(|file| file.sha256.to_string());
    Ok(Outcome::ok(content, json!({ "path": path, "mode": args.mode, "chars": chars, "words": words, "sha256": sha256 })).with_refs(vec![path]))
}

/// Records a write that has passed its checks but those of size; gives chars and words of the whole file.
pub fn write(batch: &mut Batch, writer: Option<Ordinal>, path: &str, content: &str, mode: WriteMode) -> Result<(u32, u32), Refusal> {
    let before = batch.state.files.get(path).cloned();
    let whole: Rc<str> = match (&before, mode) {
        (Some(file), WriteMode::Append) => format!("{}{content}", file.text).into(),
        _ => content.into(),
    };
    check_size(batch, path, before.as_ref().map_or(0, |file| file.text.len() as u64), whole.len() as u64)?;
    let (chars, words) = (count::chars(&whole), count::words(&whole));
    batch.emit(Event::FileWritten(FileWritten {
        invocation_id: writer.map(|ordinal| batch.invocation_id(ordinal)),
        path: path.into(),
        mode,
        content: content.into(),
        version: before.map_or(1, |file| file.version + 1),
        chars,
        words,
        sha256: sha256_hex(whole.as_bytes()).into(),
    }));
    Ok((chars, words))
}

fn check_size(batch: &Batch, path: &str, before: u64, after: u64) -> Result<(), Refusal> {
    let limits = batch.state.limits();
    if after > limits.max_file_bytes {
        return Err(Refusal::new("workspace.file_too_large", "workspace.file_too_large").arg("path", path).arg("bytes", after.to_string()).arg("limit", limits.max_file_bytes.to_string()));
    }
    let total = batch.state.file_bytes + after - before.min(batch.state.file_bytes + after);
    if total > limits.max_workspace_bytes {
        return Err(Refusal::new("workspace.full", "workspace.full").arg("bytes", total.to_string()).arg("limit", limits.max_workspace_bytes.to_string()));
    }
    Ok(())
}

fn apply_patch(batch: &mut Batch, place: CallPlace, args: &args::Patch) -> Done {
    let (path, file) = visible_file(batch, place.invocation, &args.path)?;
    access(batch, place.invocation).check_writable(&path)?;
    let knowledge = known(batch, place.invocation, &path);
    workspace::check_patch(knowledge.as_deref(), file.version, &path, args.replace_all)?;
    let plan = patch::plan(&path, &file.text, &args.old_string, &args.new_string, args.replace_all)?;
    workspace::check_patch_seen(knowledge.as_deref(), &path, &file.text, &args.old_string)?;
    let text = apply_edits(&file.text, &plan.edits);
    check_size(batch, &path, file.text.len() as u64, text.len() as u64)?;
    let (chars, words) = (count::chars(&text), count::words(&text));
    batch.emit(Event::PatchApplied(PatchApplied {
        invocation_id: batch.invocation_id(place.invocation),
        path: path.as_str().into(),
        edits: Doc::of(&plan.edits),
        version: file.version + 1,
        replacements: plan.replacements,
        chars,
        words,
        sha256: sha256_hex(text.as_bytes()).into(),
    }));
    let numbers = [("path", path.clone()), ("count", plan.replacements.to_string()), ("chars", chars.to_string()), ("words", words.to_string())];
    let numbers: Vec<(&str, &str)> = numbers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let content = batch.say("workspace.patched", &numbers);
    Ok(Outcome::ok(content, json!({ "path": path, "replacements": plan.replacements, "chars": chars, "words": words })).with_refs(vec![path]))
}

fn visible_files(batch: &Batch, ordinal: Ordinal) -> Vec<(Id, Rc<File>)> {
    let access = access(batch, ordinal);
    batch.state.files.iter().filter(|(path, _)| access.check_visible(path).is_ok()).map(|(path, file)| (path.clone(), file.clone())).collect()
}

fn list_files(batch: &mut Batch, place: CallPlace, args: &args::List) -> Done {
    let files = visible_files(batch, place.invocation);
    let access = access(batch, place.invocation);
    let folder = args.path.as_deref().map(paths::normalise).transpose()?;
    if let Some(folder) = &folder {
        access.check_visible(folder)?;
    }
    let listing = list::list(files.iter().map(|(path, file)| (&**path, &*file.text)), folder.as_deref(), args.depth)?;
    let content = listing.render(batch.locale);
    Ok(Outcome::ok(content, json!({ "entries": listing.paths() })))
}

fn search_files(batch: &mut Batch, place: CallPlace, args: &args::Search) -> Done {
    let files = visible_files(batch, place.invocation);
    let folder = args.path.as_deref().map(paths::normalise).transpose()?;
    let hits = search::search(files.iter().map(|(path, file)| (&**path, &*file.text)), &args.query, folder.as_deref(), &args.limits)?;
    let content = hits.render(batch.locale);
    Ok(Outcome::ok(content, json!({ "matches": hits.count() })))
}

/// A host tool's long result is kept in a file and named (rule T7).
pub fn keep_large(batch: &mut Batch, place: CallPlace, mut outcome: Outcome) -> Outcome {
    let limit = batch.state.limits().max_tool_result_chars;
    let chars = count::chars(&outcome.content);
    if u64::from(chars) <= limit {
        return outcome;
    }
    let name = batch.turn_call(place).map(|call| call.name.to_string()).unwrap_or_default();
    let path = format!("scratch/results/{name}-{}-{}-{}.md", place.invocation, place.round, place.index + 1);
    let head: String = outcome.content.chars().take(limit as usize).collect();
    let content = std::mem::take(&mut outcome.content);
    let kept = write(batch, Some(place.invocation), &path, &content, WriteMode::Replace).is_ok();
    let key = if kept { "turns.result_kept" } else { "turns.result_cut" };
    let note = batch.say(key, &[("path", &path), ("chars", &chars.to_string()), ("limit", &limit.to_string())]);
    outcome.content = format!("{head}\n\n{note}");
    if kept {
        outcome.resource_refs.push(path);
    }
    outcome
}

/// Keeps an answer of plain text beside the message body; nothing is overwritten (rule T6).
pub fn capture(batch: &mut Batch, ordinal: Ordinal, text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    let root = batch.work(ordinal).and_then(|work| paths::root_of(work.profile.message_body_path()).map(str::to_owned))?;
    let mut path = format!("{root}/direct_output.md");
    let mut n = 1;
    while batch.state.files.contains(path.as_str()) {
        n += 1;
        path = format!("{root}/direct_output-{n:03}.md");
    }
    let (chars, _) = write(batch, Some(ordinal), &path, text, WriteMode::Replace).ok()?;
    let (invocation_id, round) = (batch.invocation_id(ordinal), batch.round(ordinal));
    batch.emit(Event::OutputCaptured(OutputCaptured { invocation_id, round, path: path.as_str().into(), chars }));
    Some(path)
}

/// `{path: text}` of the files under a root.
pub fn under(batch: &Batch, root: &str) -> serde_json::Map<String, Value> {
    let folder = format!("{root}/");
    batch.state.files.iter().filter(|(path, _)| path.starts_with(&folder)).map(|(path, file)| (path.to_string(), Value::from(&*file.text))).collect()
}
