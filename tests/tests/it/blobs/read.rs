//! What tools and models give, as it is shown to models, kept in the record, and read again.

use assistant_host::caller::Within;
use rmcp::ClientServiceExt;
use rmcp::model::{ReadResourceRequestParams, ResourceContents};
use rmcp::service::{ClientLifecycleMode, RoleClient, RunningService};

use super::*;
use crate::HOST;

/// The pictures with bytes that a model was shown.
fn shown(ask: &Ask) -> Vec<Part> {
    fn of(parts: &[Part], found: &mut Vec<Part>) {
        for part in parts {
            match part {
                Part::Image { data: Some(_), .. } => found.push(part.clone()),
                Part::ToolResult { content, .. } => of(content, found),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    ask.messages.iter().for_each(|message| of(&message.content.parts(), &mut found));
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_a_tool_is_shown_to_the_model_and_kept_once() {
    let steps = || vec![gives("picture"), says(|heard| format!("look: {}", heard.handle()))];
    let (bed, model) = bed(Steps::default().of("x", steps()), "app__give");
    let client = bed.open().await;
    let (spawned, result) = run(&client, "go").await;
    run(&client, "go").await;
    let asked = model.asked("x");
    assert_eq!(shown(&asked[1]), [picture(PNG)]);
    assert_eq!(bytes(&client, &result[6..]).await.as_deref(), Some(PNG));
    assert_eq!(count(&bed, "SELECT count(*) FROM blobs"), 1);
    assert_eq!(count(&bed, "SELECT count(*) FROM blob_uses"), 2);
    // Only whoever has a blob is offered the tool that reads it.
    let offered = |ask: &Ask| ask.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (offered(&asked[0]), offered(&asked[1])),
        (vec!["app__give".into()], vec!["app__give".into(), "read_blob".into()])
    );
    let log = client.call("read_log", json!({ "process_id": spawned["process_id"], "transcript": true })).await;
    let recorded = log["events"].to_string();
    assert!(!recorded.contains(&STANDARD.encode(PNG)) && recorded.contains(&result[6..]), "{recorded}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_is_read_piece_by_piece() {
    let last = (LONG - 10).to_string();
    let steps = vec![
        gives("long"),
        call("read_blob", |heard| json!({ "blob": heard.handle(), "from": 6_000, "length": 20 })),
        call("read_blob", move |heard| json!({ "blob": heard.handle(), "from": last.parse::<u64>().expect("one") })),
        call("read_blob", |heard| json!({ "blob": heard.handle() })),
        says(|heard| heard.handle()),
    ];
    let (bed, model) = bed(Steps::default().of("x", steps), "app__give");
    let client = bed.open().await;
    let (spawned, result) = run(&client, "go").await;
    assert_eq!(bytes(&client, &result).await, Some(long().into_bytes()));
    let asked = model.asked("x");
    let given = |at: usize| texts(&asked[at].messages[asked[at].messages.len() - 1..]);
    let first = given(1);
    assert!(first.len() < 12_000 && first.contains("000000000\\n") && first.contains("000499999\\n"), "{first}");
    assert!(first.contains("4992000 of 5000000 characters are left out here"), "{first}");
    assert!(given(2).contains(r#""content":"000000600\\n000000601\\n""#), "{}", given(2));
    assert!(given(2).contains(r#""next_from":6020"#), "{}", given(2));
    assert!(given(3).contains(r#""content":"000499999\\n""#) && !given(3).contains("next_from"), "{}", given(3));
    assert!(given(4).contains(r#""next_from":40000"#), "as much as an answer may have");
    let record = "SELECT max(length(message)) FROM conversations";
    assert!(count(&bed, record) < 60_000, "the record names it");
    assert_eq!(client.poll(&spawned).await["status"], "finished");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_is_longer_than_an_answer_is_a_text() {
    let steps = vec![call("app__give", |_| json!({ "kind": "data", "size": 100_000 })), says(|heard| heard.handle())];
    let (bed, _) = bed(Steps::default().of("x", steps), "app__give");
    let client = bed.open().await;
    let (_, result) = run(&client, "go").await;
    let whole = json!({ "rows": vec!["row"; 100_000] }).to_string();
    assert_eq!(bytes(&client, &result).await, Some(whole.into_bytes()));
    assert!(count(&bed, "SELECT max(length(result)) FROM tool_calls") < 20_000);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_a_model_makes_is_kept_with_its_answer() {
    let paints: Step = Box::new(|_| vec![Part::text("I painted this:\n"), picture(PNG)]);
    let again = vec![paints, says(|_| "as before".into())];
    let (bed, model) = bed(Steps::default().of("x", again), "app__give");
    let client = bed.open().await;
    let (spawned, result) = run(&client, "go").await;
    let handle = handles(&result).pop().expect("a handle");
    assert_eq!(result, format!("I painted this:\n[picture, image/png, 17 bytes: {handle}]"));
    let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let named = Part::Image { mime_type: "image/png".into(), data: None, blob: Some(handle.clone()) };
    assert_eq!(client.host.pictures(process).await.expect("read"), [named]);
    assert_eq!(bytes(&client, &handle).await.as_deref(), Some(PNG));
    // Resumed, it is shown its own picture.
    let resumed = client.call("spawn_assistant", json!({ "resume_process_id": process, "query": "again" })).await;
    assert_eq!(client.end(&resumed).await["status"], "finished");
    assert_eq!(shown(&model.asked("x")[1]), [picture(PNG)]);
    assert_eq!(client.mail(&resumed).await, ["as before"]);
    client.host.close().await;
}

/// What a client of either era reads of a blob.
async fn check_client(client: &RunningService<RoleClient, ()>) {
    let asked = |kind: &str| {
        let arguments = json!({ "assistant_id": "x", "query": kind, "run_mode": "sync" });
        rmcp::model::CallToolRequestParams::new("spawn_assistant")
            .with_arguments(arguments.as_object().cloned().expect("one"))
    };
    let result = client.call_tool(asked("go")).await.expect("a result");
    let links: Vec<_> = result.content.iter().filter_map(|content| content.as_resource_link()).collect();
    assert_eq!(links.len(), 2, "{:?}", result.content);
    assert_eq!(links[0].mime_type.as_deref(), Some("image/png"));
    assert_eq!((links[0].size, links[1].size), (Some(17), Some(LONG as u64)));
    let read = async |uri: String| client.read_resource(ReadResourceRequestParams::new(uri)).await;
    let picture = read(links[0].uri.clone()).await.expect("a picture").contents;
    let want = ResourceContents::blob(STANDARD.encode(PNG), links[0].uri.clone()).with_mime_type("image/png");
    assert_eq!(picture, [want]);
    let too_long = read(links[1].uri.clone()).await.expect_err("too long").to_string();
    assert!(too_long.contains("?from=0&length=4194304"), "{too_long}");
    let mut whole = String::new();
    while whole.len() < LONG {
        let piece = read(format!("{}?from={}&length=3000000", links[1].uri, whole.len())).await.expect("a piece");
        let [ResourceContents::TextResourceContents { text, .. }] = piece.contents.as_slice() else {
            panic!("no text: {:?}", piece.contents.len())
        };
        whole.push_str(text);
    }
    assert!(whole == long(), "all of it");
    for (uri, why) in [
        ("blob://0123456789abcdef", "no blob of yours has the handle blob:0123456789abcdef"),
        ("file:///etc/passwd", "is no resource of this server"),
    ] {
        let refused = read(uri.to_owned()).await.expect_err("refused").to_string();
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(client.list_all_resources().await.expect("resources"), []);
    let templates = client.list_all_resource_templates().await.expect("templates");
    assert_eq!(templates[0].uri_template, "blob://{digits}{?from,length}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_clients_of_both_eras_read_blobs_as_resources() {
    let both = |heard: &Heard| {
        let all = handles(&heard.texts);
        format!("{} and {}", all[0], heard.handle())
    };
    let steps = vec![gives("picture"), gives("long"), says(both)];
    let (bed, _) = bed(Steps::default().of("x", steps), "app__give");
    let host = bed.try_open().await.expect("a host");
    let client = host.connect_in_process("local").await.expect("a client");
    check_client(&client).await;
    client.cancel().await.expect("it ends");
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let stop = tokio_util::sync::CancellationToken::new();
    let (served, serving) = (host.clone(), stop.clone());
    let door =
        tokio::spawn(
            async move { assistant_host::mcp::serve(&served, "local", Within::default(), ours, serving).await },
        );
    let preferred_versions = vec![rmcp::model::ProtocolVersion::V_2026_07_28];
    let modern = ().serve_with_lifecycle(theirs, ClientLifecycleMode::Discover { preferred_versions }).await;
    let modern = modern.expect("a modern client");
    check_client(&modern).await;
    modern.cancel().await.expect("it ends");
    stop.cancel();
    door.await.expect("a task").expect("served");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_calls_a_tool_of_the_app_has_its_parts_at_once() {
    let (bed, _) = bed(Steps::default().of("x", vec![says(|_| "x".into())]), "app__give");
    let host = bed.try_open().await.expect("a host");
    let client = host.connect_in_process("local").await.expect("a client");
    let asked = |arguments: Value| {
        rmcp::model::CallToolRequestParams::new("app__give")
            .with_arguments(arguments.as_object().cloned().expect("one"))
    };
    let result = client.call_tool(asked(json!({ "kind": "picture" }))).await.expect("a result");
    let content = serde_json::to_value(&result.content).expect("JSON");
    let want = json!([
        { "type": "text", "text": "here it is" },
        { "type": "image", "data": STANDARD.encode(PNG), "mimeType": "image/png" },
    ]);
    assert_eq!(content, want);
    let result = client.call_tool(asked(json!({ "kind": "file", "size": 2 }))).await.expect("a result");
    let content = serde_json::to_value(&result.content).expect("JSON");
    let want = json!({ "uri": "file:///report.pdf", "mimeType": "application/pdf", "blob": "Bwc=" });
    assert_eq!(content, json!([{ "type": "resource", "resource": want }]));
    let refused = client.call_tool(asked(json!({ "kind": "long" }))).await.expect("a result");
    assert_eq!(refused.is_error, Some(true));
    assert!(serde_json::to_string(&refused.content).expect("JSON").contains("limit_result_bytes"), "{refused:?}");
    client.cancel().await.expect("it ends");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_writes_a_blob_to_stdout() {
    let (bed, _) = bed(
        Steps::default().of("x", vec![gives("picture"), gives("long"), says(|heard| handles(&heard.texts).join(" "))]),
        "app__give",
    );
    let client = bed.open().await;
    let (spawned, result) = run(&client, "go").await;
    let named = handles(&result);
    client.host.close().await;
    drop(client);
    let config = bed.dir.path().join("config.toml");
    std::fs::write(&config, "").expect("a file");
    let logs = |handle: &str| {
        let mut command = std::process::Command::new(HOST);
        command.args(["logs", spawned["process_id"].as_str().expect("an id"), "--blob", handle, "--no-project"]);
        command.arg("--state").arg(bed.state()).arg("--config").arg(&config);
        let output = command.output().expect("a command");
        (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (handle, want) in [(&named[0], PNG.to_vec()), (named.last().expect("one"), long().into_bytes())] {
        let (code, stdout, stderr) = logs(handle);
        assert!(code == Some(0) && stdout == want, "{code:?} {} {stderr}", stdout.len());
    }
    let (code, stdout, stderr) = logs("blob:0123456789abcdef");
    assert_eq!((code, stdout.len()), (Some(1), 0));
    assert!(stderr.contains("no blob of yours has the handle blob:0123456789abcdef"), "{stderr}");
    let (code, _, stderr) = logs("nonsense");
    assert!(code == Some(2) && stderr.contains("a handle is `blob:`"), "{code:?} {stderr}");
}
