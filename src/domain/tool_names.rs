//! The names of the built-in tools, and the names that TauriTavern's files have used for them.

/// Canonical names of what the core provides.
pub const CORE_TOOLS: [&str; 13] = [
    "agent.list", "agent.delegate", "agent.handoff", "agent.await", "agent.cancel", "task.return", "workspace.list_files",
    "workspace.search_files", "workspace.read_file", "workspace.write_file", "workspace.apply_patch", "workspace.commit", "workspace.finish",
];

/// Tools that older files list and that are no more (skills are the host's tools now).
pub const RETIRED: [&str; 4] = ["skill.list", "skill.run_script", "workspace.shell", "shell"];

/// The canonical name of a tool as a profile file may write it.
pub fn canonical(written: &str) -> &str {
    let name = written.trim();
    let name = name.strip_prefix("builtin:").unwrap_or(name);
    match name {
        "read" => "workspace.read_file",
        "write" => "workspace.write_file",
        "edit" => "workspace.apply_patch",
        "grep" => "workspace.search_files",
        "list" => "workspace.list_files",
        "commit" => "workspace.commit",
        "finish" => "workspace.finish",
        "chat_read" => "chat.read_messages",
        other => CORE_TOOLS.iter().find(|core| core.replace('.', "_") == other).copied().unwrap_or(other),
    }
}

/// Whether a name lies in a namespace that the core owns.
pub fn is_reserved(name: &str) -> bool {
    ["agent.", "task.", "workspace."].iter().any(|space| name.starts_with(space))
}
