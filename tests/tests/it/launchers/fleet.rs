//! The configurations of the guide to fleets: each is read, and run with a program that stands in for the engine; what kubectl
//! makes of its one is looked at where it is here.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use assistant_host::config::Config;

use super::standins::ran;
use super::*;

/// A configuration of the guide, with its launcher called `there`.
fn of_guide(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/examples/fleet").join(file);
    let text = std::fs::read_to_string(path).expect("an example");
    let config = Config::parse(&text, Path::new("/config.toml")).expect("a configuration");
    config.launchers(&|_| None).expect("launchers");
    let name = config.default_launcher.expect("a default");
    let text = text.replace(&format!("[launchers.{name}]"), "[launchers.there]");
    text.replace(&format!("default_launcher = \"{name}\"\n"), "")
}

const PAIRS: &str = "--env=*) export \"${1#--env=}\";;";

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes() {
    let config = of_guide("kubernetes.toml");
    let (id, told) = ran(&config, "kubectl", "--", PAIRS, None).await;
    let begin = format!(
        "run assistant-{id} --quiet --stdin --rm --restart=Never --image=registry.example/assistant-runner:1 \
         --env=ASSISTANT_PROCESS_ID={id} --env=ASSISTANT_HOST_DEPTH=1 --namespace=assistants --pod-running-timeout=110s"
    );
    assert!(told.starts_with(&begin) && told.ends_with(" --command -- assistant-runner\n"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slurm() {
    // The shared folder is not here.
    let config = of_guide("slurm.toml").replace("/shared/bin/assistant-runner", RUNNER);
    let (id, told) = ran(&config, "srun", "--time=02:00:00", "x) ;;", Some("a")).await;
    let begin = format!(
        "--ntasks=1 --quiet --unbuffered --job-name=assistant-{id} \
         --export=PATH,LANG,ASSISTANT_PROCESS_ID,ASSISTANT_HOST_DEPTH --chdir=/shared/work/a --mem=512M"
    );
    assert!(told.starts_with(&begin), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nomad() {
    let config = of_guide("nomad.toml").replace("/local/assistant-runner", RUNNER);
    let text = "alloc) export ASSISTANT_PROCESS_ID=by-env;;";
    let (id, told) = ran(&config, "nomad", "assistants", text, None).await;
    let expected = format!(
        "alloc exec -i=true -t=false -job assistants env ASSISTANT_PROCESS_ID={id} ASSISTANT_HOST_DEPTH=1 {RUNNER}\n"
    );
    assert_eq!(told, expected);
}

/// As much of a cluster as kubectl asks for before it shows what it would make.
fn cluster() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let asked = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let path = asked.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
            let pods = json!({ "name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": ["create"] });
            let body = match path {
                "/api" => json!({ "kind": "APIVersions", "versions": ["v1"] }),
                "/apis" => json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [] }),
                "/api/v1" => json!({ "kind": "APIResourceList", "groupVersion": "v1", "resources": [pods] }),
                _ => Value::Null,
            };
            let (status, body) = (if body.is_null() { "404 Not Found" } else { "200 OK" }, body.to_string());
            let length = body.len();
            let head = "Content-Type: application/json\r\nConnection: close";
            let answer = format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}");
            drop((&stream).write_all(answer.as_bytes()));
        }
    });
    port
}

#[test]
fn kubectl_makes_a_pod_of_it() {
    if !can(&["kubectl", "version", "--client"]) {
        return;
    }
    let found = launchers(&of_guide("kubernetes.toml"));
    let words = found["there"].argv.iter().flat_map(|row| row.words.clone());
    // What goes with a running pod only is left out.
    let words = words.filter(|word| word != "--stdin" && word != "--rm");
    let mut argv: Vec<String> = words
        .map(|word| {
            word.replace("{name}", "assistant-1")
                .replace("{env}", "ASSISTANT_PROCESS_ID=1")
                .replace("{runner}", "assistant-runner")
        })
        .collect();
    let at = argv.iter().position(|word| word == "--command").expect("a command");
    let server = format!("--server=http://127.0.0.1:{}", cluster());
    argv.splice(at..at, ["--dry-run=client".to_owned(), "--output=json".to_owned(), server]);
    let home = tempfile::tempdir().expect("a folder");
    let made = Command::new(&argv[0]).args(&argv[1..]).env("HOME", home.path()).output().expect("it runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let pod: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let container = &pod["spec"]["containers"][0];
    assert_eq!(
        (&pod["metadata"]["name"], &pod["metadata"]["namespace"], &pod["spec"]["restartPolicy"]),
        (&json!("assistant-1"), &json!("assistants"), &json!("Never"))
    );
    assert_eq!(
        (&container["command"], &container["env"], &pod["spec"]["automountServiceAccountToken"]),
        (&json!(["assistant-runner"]), &json!([{ "name": "ASSISTANT_PROCESS_ID", "value": "1" }]), &json!(false))
    );
}
