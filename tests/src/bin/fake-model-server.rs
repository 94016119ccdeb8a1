//! Serves a fake model on loopback until it is ended, so that the command line can be tried without a network.
//!
//! `fake-model-server [ADDRESS]` prints the address for `base_url`. It answers each request with its last user message;
//! a message that begins with `status 429` (or another number) gets that status, and `call NAME {…}` calls that tool.

use conformance::model_server::{ModelServer, Reply, Request, Said, Say};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let server = ModelServer::start_with(&address, reply).await?;
    #[expect(clippy::print_stdout, reason = "the address is what this program is for")]
    {
        println!("{}", server.base_url());
    }
    std::future::pending().await
}

fn reply(request: &Request) -> Reply {
    if request.brings_a_result() {
        return Reply::text("The tool has answered.");
    }
    let said = request.last_user();
    let mut words = said.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some("status"), Some(status), _) if status.parse::<u16>().is_ok_and(|status| status >= 400) => {
            let error = serde_json::json!({ "error": { "message": format!("you asked for {status}") } });
            Reply::error(status.parse().unwrap_or(500), &error).with_header("retry-after", "1")
        }
        (Some("call"), Some(name), arguments) => {
            Reply::Say(Say::new(vec![Said::call("call_1", name, arguments.unwrap_or("{}"))]))
        }
        _ => Reply::text(&format!("You said: {said}")),
    }
}
