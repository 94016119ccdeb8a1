//! Pictures in both directions, and what is told where one cannot be shown.

use super::*;

const SVG: &str = "[a picture of the type image/svg+xml, which this model does not take]";

#[tokio::test]
async fn a_picture_that_a_model_makes_is_kept_and_shown_again() {
    let picture = "iVBORw0KGgo=";
    for wire in [Wire::OpenAi, Wire::Responses, Wire::Gemini] {
        let server = ModelServer::start().await.expect("starts");
        let model = model(&server, wire);
        server.push(Reply::Say(Say::new(vec![Said::text("here"), Said::picture("image/png", picture)])));
        let mut ask = hello();
        let answer = call(&model, ask.clone()).await.expect("answers");
        let want = vec![Part::text("here"), image(Some(picture))];
        assert_eq!(answer.message.content, Content::Parts(want), "{wire:?}");
        ask.messages.push(answer.message);
        ask.messages.push(Message::text(Role::User, "larger"));
        server.push(Reply::text("done"));
        call(&model, ask).await.expect("answers");
        let body = &server.requests()[1].body;
        let url = format!("data:image/png;base64,{picture}");
        let made = "Pictures that you made:";
        let (shown, want) = match wire {
            Wire::Gemini => {
                let data = json!({ "inlineData": { "mimeType": "image/png", "data": picture } });
                (&body["contents"][1], json!({ "role": "model", "parts": [{ "text": "here" }, data] }))
            }
            Wire::Responses => {
                let content =
                    json!([{ "type": "input_text", "text": made }, { "type": "input_image", "image_url": url }]);
                (&body["input"][2], json!({ "role": "user", "content": content }))
            }
            _ => {
                let content =
                    json!([{ "type": "text", "text": made }, { "type": "image_url", "image_url": { "url": url } }]);
                (&body["messages"][2], json!({ "role": "user", "content": content }))
            }
        };
        assert_eq!(shown, &want, "{wire:?}");
    }
}

#[tokio::test]
async fn a_picture_of_another_model_is_shown_where_an_assistant_may_hold_none() {
    let mut ask = hello();
    ask.messages.push(assistant(vec![image(Some("AA==")), tool_call("a", "t", Ok(json!({})))]));
    let result = vec![Part::ToolResult { call_id: "a".into(), content: vec![Part::text("r")], is_error: false }];
    ask.messages.push(Message { role: Role::Tool, content: Content::Parts(result) });
    let body = sent(plain, Wire::Anthropic, "m", ask.clone()).await.body;
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "AA==" });
    let want = json!([
        { "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "text", "text": "r" }] },
        { "type": "text", "text": "Pictures that you made:" },
        { "type": "image", "source": source, "cache_control": { "type": "ephemeral" } },
    ]);
    assert_eq!(body["messages"][2]["content"], want);
    let body = sent(plain, Wire::Ollama, "m", ask).await.body;
    let want = json!({ "role": "user", "content": "Pictures that you made:", "images": ["AA=="] });
    assert_eq!((&body["messages"][2]["role"], &body["messages"][3]), (&json!("tool"), &want));
}

/// Every text of a body.
fn texts(body: &Value) -> Vec<&str> {
    match body {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => vec![],
    }
}

#[tokio::test]
async fn what_cannot_be_shown_is_told_in_words() {
    let svg = || Part::Image { mime_type: "image/svg+xml".into(), data: Some("AA==".into()), blob: None };
    let kept = || Part::Image { mime_type: "image/png".into(), data: None, blob: Some("blob_7".into()) };
    let parts = || vec![svg(), image(Some("not base64")), image(None), kept()];
    let want =
        [SVG, "[a picture whose bytes are no base64]", "[a picture that is not kept]", "[a picture, kept as blob_7]"];
    for wire in Wire::ALL {
        let result = Part::ToolResult { call_id: "a".into(), content: parts(), is_error: false };
        let ask = Ask {
            messages: vec![
                Message { role: Role::User, content: Content::Parts(parts()) },
                assistant(vec![tool_call("a", "t", Ok(json!({})))]),
                Message { role: Role::Tool, content: Content::Parts(vec![result]) },
            ],
            ..Ask::default()
        };
        let body = sent(plain, wire, "m", ask).await.body;
        let told = texts(&body).join("\n");
        for want in want {
            assert_eq!(told.matches(want).count(), 2, "{wire:?} does not tell `{want}` twice: {told}");
        }
        assert!(!told.contains("not base64"), "{wire:?}");
    }
}

#[tokio::test]
async fn a_large_picture_in_one_event_arrives_whole() {
    let picture = "iVBO".repeat(2_000_000);
    for wire in [Wire::OpenAi, Wire::Responses, Wire::Gemini] {
        let answer = answer_to(wire, Reply::Say(Say::new(vec![Said::picture("image/png", &picture)]))).await;
        let Content::Parts(parts) = answer.expect("answers").message.content else { panic!("no parts") };
        assert!(parts == [image(Some(&picture))], "{wire:?}: {} parts", parts.len());
    }
}

#[tokio::test]
async fn a_model_that_takes_no_pictures_is_told_of_them_in_words_from_then_on() {
    let refusals = [
        (400, "Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text`"),
        (400, "This model does not support image input"),
        (400, "At most 0 image(s) may be provided in one prompt."),
        (400, "Invalid content type. image_url is only supported by certain models."),
        (404, "No endpoints found that support image input"),
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    ];
    for (wire, (status, said)) in Wire::ALL.into_iter().cycle().zip(refusals) {
        let server = ModelServer::start().await.expect("starts");
        let model = model(&server, wire);
        server.push(Reply::error(status, &json!({ "error": { "message": said } })));
        server.push(Reply::text("blind"));
        server.push(Reply::text("still"));
        let result = Part::ToolResult { call_id: "a".into(), content: vec![image(Some("AA=="))], is_error: false };
        let ask = || Ask {
            messages: vec![
                Message { role: Role::User, content: Content::Parts(vec![Part::text("look"), image(Some("AA=="))]) },
                assistant(vec![tool_call("a", "t", Ok(json!({})))]),
                Message { role: Role::Tool, content: Content::Parts(vec![result.clone()]) },
            ],
            ..Ask::default()
        };
        for want in ["blind", "still"] {
            let answer = call(&model, ask()).await.expect("answers");
            assert_eq!(answer.message.content.as_text(), want, "{wire:?}");
        }
        let [first, second, third] = server.requests().try_into().expect("three requests");
        assert!(first.body.to_string().contains("AA=="), "{wire:?}");
        for request in [second, third] {
            let told = request.body.to_string();
            let words = "[a picture of the type image/png; this model takes no pictures]";
            assert_eq!((told.contains("AA=="), told.matches(words).count()), (false, 2), "{wire:?}: {told}");
        }
    }
    // A refusal of that kind of a call without pictures is a refusal.
    let server = ModelServer::start().await.expect("starts");
    server.push(Reply::error(400, &json!({ "error": { "message": refusals[1].1 } })));
    call(&model(&server, Wire::OpenAi), hello()).await.expect_err("fails");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn one_refused_picture_leaves_all_others_to_the_model() {
    let refused = |said: &str| Reply::error(400, &json!({ "error": { "message": said } }));
    let tool = "the docs say: it is not a multimodal model, and never was one";
    let ask = || Ask {
        messages: vec![Message {
            role: Role::User,
            content: Content::Parts(vec![Part::text(tool), image(Some("AA=="))]),
        }],
        ..Ask::default()
    };
    for wire in Wire::ALL {
        let server = ModelServer::start().await.expect("starts");
        let model = model(&server, wire);
        let shows = |at: usize| server.requests()[at].body.to_string().contains("AA==");
        // Words about one picture: those of this call are told in words, and no later ones.
        for said in ["m does not support image/webp", "m does not support images larger than 5 MB"] {
            let before = server.requests().len();
            server.push(refused(said));
            server.push(Reply::text("without"));
            assert_eq!(call(&model, ask()).await.expect("answers").message.content.as_text(), "without", "{wire:?}");
            assert_eq!(
                (shows(before), shows(before + 1), server.requests().len()),
                (true, false, before + 2),
                "{wire:?}"
            );
            let told = server.requests()[before + 1].body.to_string();
            assert!(told.contains("refused a picture of this call"), "{wire:?}: {told}");
        }
        // The words of a tool, which the provider repeats.
        server.push(refused(&format!("odd text: {tool}")));
        call(&model, ask()).await.expect_err("fails");
        assert_eq!((shows(4), server.requests().len()), (true, 5), "{wire:?}");
        // What is refused without pictures too was not refused for them.
        server.push(refused("This model does not support image input"));
        server.push(refused("no such model"));
        let error = call(&model, ask()).await.expect_err("fails");
        assert!(error.message.contains("no such model"), "{wire:?}: {error}");
        assert_eq!((shows(5), shows(6)), (true, false), "{wire:?}");
        server.push(Reply::text("seen"));
        call(&model, ask()).await.expect("answers");
        assert_eq!((shows(7), server.requests().len()), (true, 8), "{wire:?}");
    }
}
