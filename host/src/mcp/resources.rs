//! Blobs for MCP clients: resources that can be read by their handles, and what a result shows and links of them.

use assistant_protocol::ids::SessionId;
use assistant_protocol::types::Part;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use crate::blobs::{self, Described, Handle, is_picture, named_in};
use crate::caller::Caller;
use crate::host::Host;
use crate::store::StoreError;
use crate::text::{NAME_SHOWN_CHARS_MAX, WORD_SHOWN_CHARS_MAX, cut};
use crate::tools::{self, Output};

/// What the addresses of blobs begin with.
const SCHEME: &str = "blob://";
/// Bytes of one answer: clients drop lines of more than 16 MiB, and text and base64 both grow in JSON.
const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Links of one result.
const LINKS_MAX: usize = 20;

/// How the address of a blob is made.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{SCHEME}{{digits}}{{?from,length}}"), "blob")
        .with_title("Picture, file or long text")
        .with_description(format!(
            "What a handle as blob:0123456789abcdef in a result or a message stands for. What has more than {READ_BYTES_MAX} \
             bytes is read in pieces: `from` and `length` in bytes."
        ))
}

/// Reads a blob, or a piece of it.
pub(super) async fn read(host: &Host, session: SessionId, uri: &str) -> Result<ResourceContents, ErrorData> {
    let wrong = |why: String| ErrorData::invalid_params(why, None);
    let (handle, piece) = parse(uri).map_err(wrong)?;
    let found = host.blob(Caller::Session(session), &handle).await;
    let found = found.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let Some((described, bytes)) = found else {
        return Err(ErrorData::resource_not_found(format!("no blob of yours has the handle {handle}"), None));
    };
    let bytes = match piece {
        None if described.bytes > READ_BYTES_MAX => {
            return Err(wrong(format!(
                "{handle} has {} bytes, an answer at most {READ_BYTES_MAX}: read {SCHEME}{}?from=0&length={READ_BYTES_MAX} \
                 and what follows",
                described.bytes,
                handle.digits()
            )));
        }
        None => bytes,
        Some((from, length)) => {
            let from = from.min(described.bytes);
            let until = from.saturating_add(length.unwrap_or(READ_BYTES_MAX).min(READ_BYTES_MAX)).min(described.bytes);
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            bytes.get(place(from)..place(until)).unwrap_or_default().to_vec()
        }
    };
    let contents = match blobs::as_text(&bytes) {
        Some(text) => ResourceContents::text(text, uri),
        None => ResourceContents::blob(STANDARD.encode(&bytes), uri),
    };
    Ok(contents.with_mime_type(described.mime_type))
}

/// From which byte on, and how many; none is all.
type Piece = Option<(u64, Option<u64>)>;

/// The handle and the piece that an address names.
fn parse(uri: &str) -> Result<(Handle, Piece), String> {
    let shown = cut(uri, WORD_SHOWN_CHARS_MAX);
    let (address, asked) = uri.split_once('?').map_or((uri, None), |(address, asked)| (address, Some(asked)));
    let handle = address.parse().map_err(|error| format!("`{shown}` is no resource of this server: {error}"))?;
    let Some(asked) = asked else { return Ok((handle, None)) };
    let (mut from, mut length) = (0, None);
    for one in asked.split('&').filter(|one| !one.is_empty()) {
        let (name, number) = one.split_once('=').unwrap_or((one, ""));
        let number = || number.parse().map_err(|_| format!("`{name}` in `{shown}` is no number of bytes"));
        match name {
            "from" => from = number()?,
            "length" => length = Some(number()?),
            _ => {
                return Err(format!(
                    "`{shown}` names `{}`; there are `from` and `length`",
                    cut(name, NAME_SHOWN_CHARS_MAX)
                ));
            }
        }
    }
    Ok((handle, Some((from, length))))
}

/// A result that is complete as data, the same as one text or what is shown instead, and links to the blobs that it names.
pub(super) async fn complete(host: &Host, session: SessionId, output: Output) -> Result<CallToolResult, StoreError> {
    let caller = Caller::Session(session);
    let text = tools::as_text(&output.value);
    let named = named_in(&text);
    let mut content = Vec::new();
    match output.content {
        None => content.push(ContentBlock::text(text)),
        Some(parts) => {
            for part in parts {
                content.push(shown(host, caller, part).await?);
            }
        }
    }
    let named = named.into_iter().take(LINKS_MAX).collect::<Vec<_>>();
    if !named.is_empty() {
        content.extend(host.described(caller, named).await?.iter().map(link));
    }
    let mut result = if output.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    // Where there is no data, what is shown is the result.
    result.structured_content = Some(output.value).filter(|value| !output.is_error && !value.is_null());
    Ok(result)
}

/// A part as a client is shown it.
async fn shown(host: &Host, caller: Caller, part: Part) -> Result<ContentBlock, StoreError> {
    Ok(match part {
        Part::Text { text } => ContentBlock::text(text),
        Part::Image { mime_type, data: Some(data), .. } => ContentBlock::image(data, mime_type),
        Part::Image { mime_type, data: None, blob } => {
            let handle = blob.as_deref().and_then(|blob| blob.parse::<Handle>().ok());
            let found = match &handle {
                Some(handle) => host.blob(caller, handle).await?,
                None => None,
            };
            match found {
                Some((found, bytes)) if is_picture(&found.mime_type) && found.bytes <= READ_BYTES_MAX => {
                    ContentBlock::image(STANDARD.encode(bytes), found.mime_type)
                }
                Some((found, _)) => link(&found),
                None => ContentBlock::text(format!("[a picture ({mime_type}) that is not kept here any more]")),
            }
        }
        Part::Unknown(value) => file(&value).unwrap_or_else(|| ContentBlock::text(value.to_string())),
        Part::Reasoning { .. } | Part::ToolCall { .. } | Part::ToolResult { .. } | Part::Opaque { .. } => {
            ContentBlock::text(serde_json::to_string(&part).unwrap_or_default())
        }
    })
}

/// A file that a tool of the app gives to a client, as [`blobs::file`] makes it.
fn file(value: &Value) -> Option<ContentBlock> {
    let (mime_type, data) = (value["mime_type"].as_str()?, value["data"].as_str()?);
    let name = value["name"].as_str().unwrap_or("file");
    let contents = ResourceContents::blob(data, format!("file:///{name}")).with_mime_type(mime_type);
    (value["type"] == "file").then(|| ContentBlock::resource(contents))
}

fn link(blob: &Described) -> ContentBlock {
    let digits = blob.handle.digits();
    let name = blob.name.clone().unwrap_or_else(|| blob.handle.to_string());
    let linked = Resource::new(format!("{SCHEME}{digits}"), name).with_mime_type(&blob.mime_type).with_size(blob.bytes);
    ContentBlock::resource_link(linked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_handle_and_a_piece() {
        let check = |uri: &str, want: Result<Piece, &str>| {
            let got = parse(uri).map(|(handle, piece)| {
                assert_eq!(handle.digits(), "0123456789abcdef");
                piece
            });
            match (got, want) {
                (Err(got), Err(want)) => assert!(got.contains(want), "{uri}: {got}"),
                (got, want) => assert_eq!(got, want.map_err(str::to_owned), "{uri}"),
            }
        };
        check("blob://0123456789abcdef", Ok(None));
        check("blob:0123456789ABCDEF", Ok(None));
        check("blob://0123456789abcdef?from=7", Ok(Some((7, None))));
        check("blob://0123456789abcdef?length=3&from=7", Ok(Some((7, Some(3)))));
        check("blob://0123456789abcdef?", Ok(Some((0, None))));
        check("blob://0123456789abcdef?from=-1", Err("no number of bytes"));
        check("blob://0123456789abcdef?line=1", Err("names `line`"));
        check("file:///etc/passwd", Err("no resource of this server"));
        check("blob://../x", Err("no resource of this server"));
        check("", Err("no resource of this server"));
    }
}
