//! A server that is reached over HTTP.

#[cfg(feature = "http-servers")]
mod on {
    use std::collections::{BTreeMap, HashMap};
    use std::time::Duration;

    use reqwest::header::{HeaderName, HeaderValue};
    use rmcp::transport::streamable_http_client::{
        StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
    };

    /// How long a server is waited for to take a connection.
    const CONNECT_WITHIN: Duration = Duration::from_secs(10);
    /// Characters of a value that is looked for by itself; a shorter one may be part of any word.
    const SECRET_CHARS_MIN: usize = 8;

    /// A transport to an address. Redirects are not followed: they would get the headers.
    ///
    /// # Errors
    /// In words: a header is none, or there is no client here.
    pub(in crate::servers) fn transport(
        url: &str,
        headers: &BTreeMap<String, String>,
        message_bytes_max: usize,
        calls_max: usize,
    ) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
        let mut sent = HashMap::new();
        for (name, value) in headers {
            // The value is in no message: it may be a secret.
            let broken = || format!("the header `{name}` is none that can be sent");
            let mut value = HeaderValue::from_str(value).map_err(|_| broken())?;
            value.set_sensitive(true);
            sent.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| broken())?, value);
        }
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_WITHIN)
            // A small body may not become a large one.
            .no_gzip()
            .build()
            .map_err(|error| format!("there is no HTTP client here: {error}"))?;
        let config = StreamableHttpClientTransportConfig::with_uri(url)
            .custom_headers(sent)
            .max_json_response_size(message_bytes_max)
            .max_sse_event_size(message_bytes_max)
            .max_concurrent_requests(calls_max);
        Ok(StreamableHttpClientTransport::with_client(client, config))
    }

    /// What went wrong with a request, in words; none where the error is not one of HTTP.
    pub(in crate::servers) fn fault(error: &(dyn std::error::Error + 'static)) -> Option<String> {
        type Fault = StreamableHttpError<reqwest::Error>;
        Some(match error.downcast_ref::<Fault>()? {
            Fault::Client(error) => of_request(error),
            Fault::HttpStatus(error) => format!("it answered HTTP {}", error.status),
            Fault::UnexpectedServerResponse(told) => of_answer(told),
            Fault::UnexpectedContentType(Some(kind)) => {
                format!("it answered with `{kind}`, where the protocol has JSON or a stream of events")
            }
            Fault::UnexpectedContentType(None) => "it did not tell what kind of answer it gave".to_owned(),
            Fault::ResponseBodyTooLarge { max_size } => {
                format!("limit server_message_bytes: its answer has more than {max_size} bytes")
            }
            Fault::AuthRequired(_) => "it wants to know who asks (HTTP 401): give its key in `headers`".to_owned(),
            Fault::InsufficientScope(_) => {
                "it does not allow that (HTTP 403): give another key in `headers`".to_owned()
            }
            Fault::SessionExpired => "it does not know this session any more (HTTP 404)".to_owned(),
            Fault::MissingSessionIdInResponse => "it began no session".to_owned(),
            Fault::Deserialize(error) => format!("its answer is no message of this protocol: {error}"),
            Fault::ReservedHeaderConflict(name) => {
                format!("the header `{name}` is one that the protocol sets itself; take it out of `headers`")
            }
            Fault::TransportChannelClosed => "its connection has ended".to_owned(),
            Fault::UnexpectedEndOfStream => "its answer ended in the middle".to_owned(),
            Fault::SessionRecoveryTimeout | Fault::ControlRequestTimeout => "it did not answer in time".to_owned(),
            other => deepest(other),
        })
    }

    /// What went wrong before there was an answer, or in the middle of it.
    fn of_request(error: &reqwest::Error) -> String {
        let place = error.url().map_or_else(|| "it".to_owned(), ToString::to_string);
        let why = deepest(error);
        if error.is_connect() {
            format!("there is no connection to {place}: {why}")
        } else if error.is_timeout() {
            format!("{place} did not answer in time")
        } else {
            format!("the answer of {place} could not be read: {why}")
        }
    }

    /// What an answer is that is none, where rmcp tells it in words of its own.
    fn of_answer(told: &str) -> String {
        /// What rmcp writes before the fault and the beginning of an answer that is no message.
        const NO_MESSAGE: &str = "could not parse JSON response as ServerJsonRpcMessage: ";
        /// What serde writes before the name of a type, for JSON that fits none of its variants.
        const NO_SHAPE: &str = "data did not match any variant of untagged enum ";
        if told.starts_with("HTTP ") {
            return format!("it answered {}", told.trim_end_matches([' ', ':']));
        }
        match told.strip_prefix(NO_MESSAGE) {
            Some(why) => {
                let shown = why.strip_prefix(NO_SHAPE).and_then(|rest| rest.split_once(": "));
                let why = shown.map_or(why, |(_, shown)| shown);
                format!("its answer is no message of this protocol: {why}")
            }
            None => "its answer is none that the protocol has there".to_owned(),
        }
    }

    /// The words of the cause behind all others.
    fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
        std::iter::successors(Some(error), |error| error.source()).last().map_or_else(String::new, ToString::to_string)
    }

    /// A text without what may be secret in the filled-in address `url`: its query, and who asks. The rest of it is left.
    pub(in crate::servers) fn hide(text: &str, url: &str) -> String {
        let Ok(whole) = reqwest::Url::parse(url) else { return text.replace(url, "(its address)") };
        let mut bare = whole.clone();
        bare.set_query(None);
        bare.set_fragment(None);
        // Only an address without a host has none to take away.
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        // A client may have taken one or the other out of the address before it tells it.
        let mut anonymous = bare.clone();
        anonymous.set_query(whole.query());
        let mut text = text.to_owned();
        for one in [url, whole.as_str(), anonymous.as_str()] {
            text = text.replace(one, bare.as_str());
        }
        let user = Some(whole.username()).filter(|user| user.chars().count() >= SECRET_CHARS_MIN);
        let written = url.split_once('?').map(|(_, query)| query.split('#').next().unwrap_or(query));
        let mut secrets: Vec<String> =
            [whole.query(), written, whole.password(), user].into_iter().flatten().map(str::to_owned).collect();
        let values = [whole.query(), written].into_iter().flatten().flat_map(|query| query.split('&'));
        secrets.extend(values.filter_map(|pair| Some(pair.split_once('=')?.1.to_owned())).filter(|v| long(v)));
        secrets.extend(whole.query_pairs().map(|(_, value)| value.into_owned()).filter(|value| long(value)));
        // A part of another goes last.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret.as_str(), "(left out)");
        }
        text
    }

    fn long(value: &str) -> bool {
        value.chars().count() >= SECRET_CHARS_MIN
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn check(text: &str, url: &str, want: &str) {
            assert_eq!(hide(text, url), want, "{url}");
        }

        #[test]
        fn what_may_be_secret_in_an_address_is_in_no_text() {
            let url = "http://a.b:1/mcp?key=very-secret";
            check(&format!("no answer of ({url}): refused"), url, "no answer of (http://a.b:1/mcp): refused");
            check("bad key very-secret", url, "bad key (left out)");
            check("at http://a.b/?k=a%20b", "http://a.b?k=a b", "at http://a.b/");
            check("at http://a.b/?k=1", "http://me:word-of-mine@a.b/?k=1", "at http://a.b/");
            check("http://me:word-of-mine@a.b/ word-of-mine", "http://me:word-of-mine@a.b/", "http://a.b/ (left out)");
            check("nothing of it", "http://a.b/?v=1", "nothing of it");
            check("no address: very secret?key=x", "very secret?key=x", "no address: (its address)");
        }
    }
}

#[cfg(feature = "http-servers")]
pub(super) use on::{fault, hide, transport};

/// This build reaches none.
#[cfg(not(feature = "http-servers"))]
pub(super) fn hide(text: &str, url: &str) -> String {
    text.replace(url, "(its address)")
}
