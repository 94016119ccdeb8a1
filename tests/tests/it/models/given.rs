//! Pictures of a task: its model sees them in the first call and in every later one, of whoever goes on with it too.

use std::sync::Arc;

use assistant_host::blobs::Blob;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformance::bed::{Bed, assistant};

use super::*;
use crate::RUNNER;

/// A picture that is no other one's, by its first bytes.
fn png(name: &str) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\nand so on ", name.as_bytes()].concat()
}

/// A bed whose model is at a server, and whose project has `a.txt`, `one.png`, `two.png` and `late.png`.
fn bed(server: &ModelServer, wire: Wire) -> Bed {
    let keeps = assistant("keeps", "read_file").replace("tools:", "session: true\ntools:");
    let files = [("sees.md", assistant("sees", "read_file")), ("keeps.md", keeps)];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let bed = Bed::with_model(RUNNER, &files, Arc::new(model(server, wire)));
    std::fs::write(bed.project().join("a.txt"), "A").expect("a file");
    for name in ["one.png", "two.png", "late.png"] {
        std::fs::write(bed.project().join(name), png(name)).expect("a file");
    }
    bed
}

/// What the users of a conversation said, without marks of a cache.
fn users(request: &Request) -> Vec<Value> {
    let fields = ["messages", "input", "contents"];
    let messages = fields.iter().find_map(|field| request.body[*field].as_array()).expect("a conversation");
    let users = messages.iter().filter(|message| message["role"] == "user").cloned();
    let unmarked = users.map(|mut message| {
        for part in message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
            part.as_object_mut().expect("an object").remove("cache_control");
        }
        message
    });
    unmarked.collect()
}

/// A user's message of texts and pictures, each picture named `.png`.
fn said(wire: Wire, parts: &[&str]) -> Value {
    let data = |name: &str| STANDARD.encode(png(name));
    let url = |name: &str| format!("data:image/png;base64,{}", data(name));
    let is_picture = |part: &&&str| part.ends_with(".png");
    let each = |text: fn(&str) -> Value, picture: &dyn Fn(&str) -> Value| -> Value {
        parts.iter().map(|part| if is_picture(&part) { picture(part) } else { text(part) }).collect()
    };
    let content = match wire {
        Wire::OpenAi => each(
            |text| json!({ "type": "text", "text": text }),
            &|name| json!({ "type": "image_url", "image_url": { "url": url(name) } }),
        ),
        Wire::Responses => each(
            |text| json!({ "type": "input_text", "text": text }),
            &|name| json!({ "type": "input_image", "image_url": url(name) }),
        ),
        Wire::Anthropic => each(
            |text| json!({ "type": "text", "text": text }),
            &|name| json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data(name) } }),
        ),
        Wire::Gemini => {
            let parts = each(
                |text| json!({ "text": text }),
                &|name| json!({ "inlineData": { "mimeType": "image/png", "data": data(name) } }),
            );
            return json!({ "role": "user", "parts": parts });
        }
        Wire::Ollama => {
            let texts: String = parts.iter().filter(|part| !is_picture(part)).copied().collect();
            let pictures: Vec<_> = parts.iter().filter(is_picture).map(|name| data(name)).collect();
            return json!({ "role": "user", "content": texts, "images": pictures });
        }
    };
    json!({ "role": "user", "content": content })
}

/// The file of a picture, as a task names it.
fn file(name: &str) -> String {
    format!("<file path=\"{name}\">\n{}\n</file>", Blob::new(png(name), "", Some(name)).line("picture"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_call_has_the_pictures_of_the_task_and_so_has_each_later_one() {
    for wire in Wire::ALL {
        let server = ModelServer::start().await.expect("starts");
        let bed = bed(&server, wire);
        let client = bed.open().await;
        for _ in 0..2 {
            server.push(Reply::text("seen"));
        }
        let inputs = json!(["a.txt", "one.png", "two.png"]);
        let call = json!({ "assistant_id": "sees", "query": "Look.", "inputs": inputs, "run_mode": "sync" });
        let ended = client.call("spawn_assistant", call).await;
        assert_eq!(ended["result"]["content"], "seen", "{wire:?}: {ended}");
        let texts = [format!("<file path=\"a.txt\">\nA\n</file>\n\n{}", file("one.png")), file("two.png")];
        let second = format!("\n\n{}", texts[1]);
        let want = said(wire, &[&texts[0], "one.png", &second, "two.png", "\n\nLook."]);
        assert_eq!(users(&server.requests()[0]), std::slice::from_ref(&want), "{wire:?}");
        // What becomes of the file, and of the host, changes nothing.
        client.host.close().await;
        drop(client);
        std::fs::remove_file(bed.project().join("one.png")).expect("removed");
        let client = bed.open().await;
        let resume = json!({ "resume_process_id": ended["process_id"], "query": "And now?", "run_mode": "sync" });
        assert_eq!(client.call("spawn_assistant", resume).await["result"]["content"], "seen");
        let again = &server.requests()[1];
        assert_eq!(users(again)[0], want, "{wire:?}");
        assert!(again.last_user().contains("And now?"), "{wire:?}");
        client.host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_goes_on_keeps_its_pictures_and_takes_new_ones() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let server = ModelServer::start().await.expect("starts");
        let bed = bed(&server, wire);
        let client = bed.open().await;
        for name in ["one.png", "two.png"] {
            server.push(Reply::text("seen"));
            let call = json!({ "assistant_id": "keeps", "query": "Look.", "inputs": [name], "run_mode": "sync" });
            assert_eq!(client.call("spawn_assistant", call).await["result"]["content"], "seen");
        }
        let want = |name: &str| said(wire, &[&file(name), name, "\n\nLook."]);
        assert_eq!(users(&server.requests()[1]), [want("one.png"), want("two.png")], "{wire:?}");
        client.host.close().await;
    }
}

/// A task that nobody has begun yet has its files still when it is resumed, and those that come with the resumption.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_never_began_keeps_its_files_and_takes_new_ones() {
    let wire = Wire::OpenAi;
    let server = ModelServer::start().await.expect("starts");
    let mut bed = bed(&server, wire);
    bed.limits.running_per_session = 1;
    let client = bed.open().await;
    server.push(Reply::Silence);
    let first = client.spawn("sees", "go").await;
    client.asked(&first).await;
    let inputs = json!(["a.txt", "one.png"]);
    let call = json!({ "assistant_id": "sees", "query": "Look.", "inputs": inputs });
    let queued = client.call("spawn_assistant", call).await;
    assert_eq!(queued["status"], "queued");
    client.call("cancel_assistant", json!({ "process_id": queued["process_id"] })).await;
    client.call("cancel_assistant", json!({ "process_id": first["process_id"] })).await;
    std::fs::write(bed.project().join("a.txt"), "B").expect("a file");
    let resume =
        |inputs: Value| json!({ "resume_process_id": queued["process_id"], "inputs": inputs, "run_mode": "sync" });
    let many: Vec<String> = (0..49).map(|number| format!("{number}.txt")).collect();
    many.iter().for_each(|name| std::fs::write(bed.project().join(name), "x").expect("a file"));
    let refused = client.try_call("spawn_assistant", resume(json!(many))).await.expect_err("refused");
    let told = refused["message"].as_str().expect("a message");
    assert!(told.contains("are 51 with 50 bytes of text; the most is 50"), "{told}");
    server.push(Reply::text("seen"));
    let ended = client.call("spawn_assistant", resume(json!(["late.png", "a.txt"]))).await;
    assert_eq!(ended["result"]["content"], "seen", "{ended}");
    let (late, last) = (format!("\n\n{}", file("late.png")), "\n\n<file path=\"a.txt\">\nB\n</file>\n\nLook.");
    let want = said(wire, &[&file("one.png"), "one.png", &late, "late.png", last]);
    assert_eq!(users(server.requests().last().expect("a request")), [want]);
    client.host.close().await;
}
