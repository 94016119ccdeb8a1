//! What runs on this machine, as /proc tells it (Linux).

/// The ids of all processes.
pub fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).collect()
}

/// The ids of processes whose environment says that they belong to this process of a host: its runner, and what that
/// has started.
#[must_use]
pub fn marked(process_id: &str) -> Vec<u32> {
    let mark = format!("ASSISTANT_PROCESS_ID={process_id}");
    let has = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    all().into_iter().filter(has).collect()
}

/// The children of a process, each with its state: `Z` is one that has ended and is not reaped.
#[must_use]
pub fn children(of: u32) -> Vec<(u32, String)> {
    let state = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?.to_owned();
        (fields.next()?.parse() == Ok(of)).then_some((pid, state))
    };
    all().into_iter().filter_map(state).collect()
}

/// What a process has open, without the numbers that tell two pipes apart, sorted.
#[must_use]
pub fn files(of: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{of}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let kind = |path: std::path::PathBuf| path.to_string_lossy().split(":[").next().unwrap_or_default().to_owned();
    let mut found: Vec<String> = links.map(kind).collect();
    found.sort();
    found
}
