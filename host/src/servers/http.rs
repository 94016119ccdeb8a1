//! A server that is reached over HTTP.

#[cfg(feature = "http-servers")]
mod on {
    use std::collections::{BTreeMap, HashMap};
    use std::time::Duration;

    use reqwest::header::{HeaderName, HeaderValue};
    use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};

    /// How long a server is waited for to take a connection.
    const CONNECT_WITHIN: Duration = Duration::from_secs(10);

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
}

#[cfg(feature = "http-servers")]
pub(super) use on::transport;
