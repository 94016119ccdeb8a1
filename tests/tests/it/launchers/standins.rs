//! docker and the engines of a fleet with programs that stand in for them: they note what they are told, and run the runner as
//! the real ones do. The configurations are those of the guide.

use rmcp::ServiceExt;
use rmcp::transport::TokioChildProcess;

use super::*;
use crate::crash::{McpClient, call, mcp};

/// Notes its words, does what the real one does with its variables, and runs what is behind them.
const BEGIN: &str = "printf '%s\\n' \"$*\" >> \"$0.log\"";

/// What stands in for a program, by how that takes variables and where its runner's command begins.
fn stand_in(begins: &str, variables: &str) -> String {
    format!(
        "{BEGIN}\nwhile [ $# -gt 0 ] && [ \"$1\" != {begins} ]; do case \"$1\" in {variables} esac; shift; done\nshift\n\
         [ \"$1\" != /assistant-runner-of-the-host ] || set -- {RUNNER}\n\
         test -n \"$ASSISTANT_PROCESS_ID\" || exit 9\nexec \"$@\""
    )
}

/// Runs `x` to its end on a host whose programs are these, with a configuration; gives the process and what `program` was told.
pub(super) async fn ran(
    config: &str,
    program: &str,
    begins: &str,
    variables: &str,
    working_dir: Option<&str>,
) -> (String, String) {
    let text = stand_in(begins, variables);
    let bin = Bin::new(&[(program, &text), ("assistant-runner", &format!("exec {RUNNER} \"$@\""))]);
    let steps = script(&[("x", json!([{ "text": "done" }]))]);
    let bed = Bed::new(RUNNER, &[("x.md", &conformance::bed::assistant("x", ""))], &steps);
    let mut command = mcp(&bed, &steps);
    let file = bed.dir.path().join("config.toml");
    let model = std::fs::read_to_string(&file).expect("a configuration");
    std::fs::write(&file, format!("{model}\n{config}")).expect("a file");
    let text = format!("default_launcher = \"there\"\n{}", std::fs::read_to_string(&file).expect("a configuration"));
    std::fs::write(&file, text).expect("a file");
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", bin.0.path().display()));
    let client: McpClient = ().serve(TokioChildProcess::new(command).expect("a process")).await.expect("a client");
    let mut asked = json!({ "assistant_id": "x", "query": "go", "run_mode": "sync" });
    if let Some(dir) = working_dir {
        asked["working_dir"] = json!(dir);
    }
    let spawned = call(&client, "spawn_assistant", asked).await;
    let polled =
        call(&client, "poll_assistant", json!({ "process_id": spawned["process_id"], "wait_ms": 20_000 })).await;
    assert_eq!(polled["process"]["status"], "finished", "{config}: {polled}");
    client.cancel().await.expect("it ends");
    let told = std::fs::read_to_string(bin.path(&format!("{program}.log"))).expect("it was run");
    (spawned["process_id"].as_str().expect("an id").to_owned(), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_is_told_names_of_variables_and_what_it_may() {
    let config =
        format!("[launchers.there]\npreset = \"docker\"\nimage = \"a/b:1\"\nbring = {}\nwrite = true", json!(RUNNER));
    let (id, told) = ran(&config, "docker", "a/b:1", "x) ;;", None).await;
    let number = |which: &str| {
        let told = Command::new("id").arg(which).output().expect("id");
        String::from_utf8_lossy(&told.stdout).trim().to_owned()
    };
    let user = format!("{}:{}", number("-u"), number("-g"));
    let begin = format!(
        "run --rm --interactive --init --name assistant-{id} --user={user} --network none --read-only --tmpfs /tmp --cap-drop=all \
         --security-opt no-new-privileges --env=ASSISTANT_PROCESS_ID --env=ASSISTANT_HOST_DEPTH --volume="
    );
    assert!(told.starts_with(&begin), "{told}");
    for part in [
        "/project:rw",
        ":/assistant-runner-of-the-host:ro",
        " --workdir /",
        " --entrypoint= a/b:1 /assistant-runner-of-the-host\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
