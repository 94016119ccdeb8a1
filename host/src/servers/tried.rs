//! The configured servers, each started for once, to tell what it offers or why it does not start. No host is needed.

use std::path::Path;
use std::time::{Duration, Instant};

use super::ServedTool;
use super::configured::Configured;
use super::expand::{Environment, World, filled, ready};
use super::offered;
use super::program::Ground;
use super::secrets::Secrets;
use super::spec::How;
use super::start::{StartLimit, Wish, start};
use crate::launcher::Strays;
use crate::limits::Limits;
use crate::trust;

/// How long a server that is hung up on may take to end.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A server that was started for once.
#[derive(Debug)]
pub struct Tried {
    /// Its name.
    pub name: String,
    /// Its program with its arguments, or its address, without secrets.
    pub reached_by: String,
    /// The tools that it offers, or why it does not.
    pub tools: Result<Vec<ServedTool>, String>,
    /// How long its start took, milliseconds.
    pub ms: u64,
}

/// Starts all configured servers side by side, asks what they offer, and ends them. Those that are switched off are left
/// out. `project` is the folder that they work in, else the one for temporary files; `state` names whoever starts them.
pub async fn try_all(
    configured: &Configured,
    environment: &Environment,
    limits: &Limits,
    project: Option<&Path>,
    state: &Path,
) -> Vec<Tried> {
    let (strays, elsewhere) = (Strays::new(false), std::env::temp_dir());
    let elsewhere = elsewhere.as_path();
    let on = Ground { limits, state, strays: &strays };
    let tries = configured.iter().filter(|spec| spec.how != How::Off).map(|spec| async move {
        let began = Instant::now();
        let world = World { environment, keys: &[], project, folder: project.unwrap_or(elsewhere), bare: false };
        let within = Duration::from_millis(spec.start_ms.unwrap_or(limits.server_start_ms));
        let tools = async {
            let ready = ready(&spec.how, &world)?;
            let within_of = StartLimit::of(spec, false);
            let secrets = Secrets::of(&ready, filled(&spec.how, &world)?);
            let wish =
                Wish { name: &spec.name, ready: &ready, secrets: &secrets, within, within_of, depth: 0, inside: None };
            let running = start(on, &wish).await.map_err(|error| error.message)?;
            let listed = tokio::time::timeout(within, running.tools(on)).await;
            running.end(on, END_WITHIN).await;
            let late = |_| format!("it did not tell its tools within {} ms", within.as_millis());
            let listed = listed.map_err(late)?.map_err(|error| error.message)?;
            let mut tools = offered::of_server(spec, &listed);
            offered::name_all(&mut tools, &std::collections::BTreeSet::new());
            Ok(tools)
        };
        let tools = tools.await;
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Tried { name: spec.name.clone(), reached_by: reached_by(&spec.how), tools, ms }
    });
    futures::future::join_all(tries).await
}

/// How a server is reached, as it is written and without secrets: what variables hold is not told.
fn reached_by(how: &How) -> String {
    match how {
        How::Program { command, args, .. } => {
            let words: Vec<String> = std::iter::once(command).chain(args).cloned().collect();
            trust::arguments_masked(&words).join(" ")
        }
        How::Http { url, .. } => trust::arguments_masked(std::slice::from_ref(url)).concat(),
        How::Named | How::Off | How::Unusable(_) => String::new(),
    }
}
