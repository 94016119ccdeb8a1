//! What only some runners do.

use assistant_protocol::ids::MessageId;
use serde_json::{Value, json};

use super::super::Played;
use super::super::scripted_host::ScriptedHost;
use super::{Outcome, cases};

cases! {
    "messages" MESSAGES messages "A runner that says `messages` takes them by `deliver_message`.";
    "no-messages" NO_MESSAGES no_messages "One that does not say so refuses `deliver_message`.";
}

fn mail(host: &ScriptedHost) -> Value {
    let message = json!({
        "id": MessageId::mint(), "from_assistant_id": "main", "to_assistant_id": "kit", "from_process_id": null,
        "to_process_id": host.process_id, "content": "news", "created_at": 1_764_000_000_000_i64, "read_at": null,
    });
    json!({ "message": message })
}

async fn messages(host: &mut ScriptedHost) -> Outcome {
    if !host.begin().await?.capabilities.messages {
        return Ok(Played::NotOffered);
    }
    // An adapter makes no model calls: what it does with its run is its own.
    let run = host.ask("run", &super::task("go")).await?;
    let mail = mail(host);
    let asked = host.ask("deliver_message", &mail).await?;
    host.answer_beside(&asked)
        .await?
        .map_err(|error| host.fault("answers `deliver_message` with {}", error.to_string()))?;
    let cancel = host.ask("cancel", &json!({ "reason": "a test", "grace_ms": 5_000 })).await?;
    host.answer_beside(&cancel).await?.map_err(|error| host.fault("answers `cancel` with {}", error.to_string()))?;
    host.answer_beside(&run).await?.map_err(|error| host.fault("answers `run`", error.to_string()))?;
    Ok(Played::Kept)
}

async fn no_messages(host: &mut ScriptedHost) -> Outcome {
    if host.begin().await?.capabilities.messages {
        return Ok(Played::NotOffered);
    }
    let mail = mail(host);
    let asked = host.ask("deliver_message", &mail).await?;
    host.error(&asked, &[]).await?;
    host.ping().await?;
    Ok(Played::Kept)
}
