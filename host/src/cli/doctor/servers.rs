//! Whether each configured tool server starts, and what it offers.

use serde::Serialize;

use super::Report;
use crate::cli::open::Setting;

/// A configured tool server.
#[derive(Serialize)]
pub(super) struct Known {
    pub(super) name: String,
    /// Its program or its address; none where it was not started.
    pub(super) reached_by: Option<String>,
    /// Its tools, by the names that models call them by; none where it was not started or did not tell them.
    pub(super) tools: Option<Vec<String>>,
    /// How long its start took, milliseconds.
    pub(super) started_ms: Option<u64>,
    pub(super) error: Option<String>,
}

/// Starts each configured server where `calls`, and ends it.
pub(super) async fn look(report: &mut Report, setting: &Setting, calls: bool) {
    if !calls {
        let not_asked =
            |name: &str| Known { name: name.to_owned(), reached_by: None, tools: None, started_ms: None, error: None };
        report.servers = setting.servers.iter().map(|spec| not_asked(&spec.name)).collect();
        return;
    }
    for tried in setting.try_servers().await {
        let error = tried.tools.as_ref().err().cloned();
        if let Some(error) = &error {
            let message = format!("the tool server {}: {error}", tried.name);
            let hint = "mend its entry in the configuration, or take it out: assistants do without it until then";
            report.problem_here(message, hint);
        }
        report.servers.push(Known {
            name: tried.name,
            reached_by: Some(tried.reached_by),
            tools: tried.tools.ok().map(|tools| tools.into_iter().map(|tool| tool.name).collect()),
            started_ms: Some(tried.ms),
            error,
        });
    }
}
