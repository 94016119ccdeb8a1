//! Addresses that are fetched, against patterns such as `domain:docs.rs` and `https://docs.rs/*`.

use std::fmt;

use super::glob::{matches, may_match};

/// The longest address that is looked at, bytes.
const URL_BYTES_MAX: usize = 8 * 1024;

/// An address of the web, read strictly: what programs read differently is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    /// In small letters, without a dot at its end.
    host: String,
    /// As it is compared with a pattern for whole addresses.
    whole: String,
}

impl Url {
    /// Reads an address.
    ///
    /// # Errors
    /// Why it is none, or none that everybody reads the same.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.len() > URL_BYTES_MAX {
            return Err(format!("the address is longer than {URL_BYTES_MAX} bytes"));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return Err("the address has a blank, a backslash or a sign in it that is not seen".to_owned());
        }
        let (scheme, rest) = text.split_once("://").ok_or("it is no address that begins with `https://`")?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return Err("it is no address that begins with `https://` or `http://`".to_owned());
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, behind) = rest.split_at(end);
        if authority.contains('@') {
            return Err("the address has a user in it".to_owned());
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err("the port of the address is no number".to_owned());
        }
        let host = read_host(host)?;
        let behind = decoded(behind);
        if behind.split(['/', '?', '#']).any(|part| part == "." || part == "..") {
            return Err("the address has `.` or `..` for a part of its path".to_owned());
        }
        let port = port.filter(|port| !matches!((scheme.as_str(), *port), ("https", "443") | ("http", "80")));
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let behind = if behind.starts_with('/') { behind } else { format!("/{behind}") };
        Ok(Self { whole: format!("{scheme}://{host}{port}{behind}"), host })
    }

    /// Whether a pattern lets it pass: `domain:x` that host alone, `domain:*.x` those below it, else the whole address.
    pub(super) fn matches(&self, pattern: &str) -> bool {
        match domain(pattern) {
            Some(domain) => match domain.strip_prefix("*.") {
                Some(above) => self.host.strip_suffix(above).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
                None => domain == "*" || self.host == domain,
            },
            None => matches(&decoded(pattern), &self.whole),
        }
    }

    /// Whether a pattern refuses it: a host with all below it, or the whole address.
    pub(super) fn may_match(&self, pattern: &str) -> bool {
        match domain(pattern) {
            Some(domain) => {
                let above = domain.trim_start_matches("*.");
                let below = self.host.strip_suffix(above).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                domain == "*" || below || may_match(&domain, &self.host)
            }
            None => may_match(&decoded(pattern), &self.whole),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.whole.fmt(f)
    }
}

/// The domain that a pattern is about; of a word that is no address too.
fn domain(pattern: &str) -> Option<String> {
    let named = pattern.strip_prefix("domain:").map(str::trim);
    let bare = (!pattern.contains("://") && !pattern.contains('/')).then_some(pattern);
    let domain = named.or(bare)?;
    let domain = domain.trim_end_matches('.').to_ascii_lowercase();
    // An address of numbers has one spelling in a pattern too.
    Some(if domain.starts_with('[') { read_host(&domain).unwrap_or(domain) } else { domain })
}

/// A text in which signs that mean the same with and without `%` stand without it, and other `%` have big letters.
///
/// See <https://www.rfc-editor.org/rfc/rfc3986#section-6.2.2>.
fn decoded(text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        done.push_str(before);
        let digits = behind.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        rest = if byte.is_some() { &behind[2..] } else { behind };
        match byte {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => done.push(char::from(byte)),
            Some(byte) => done.push_str(&format!("%{byte:02X}")),
            None => done.push('%'),
        }
    }
    done + rest
}

fn read_host(host: &str) -> Result<String, String> {
    let lower = host.to_ascii_lowercase();
    if let Some(inner) = lower.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return match inner.parse::<std::net::Ipv6Addr>() {
            // What is mapped from an address of four numbers leads where that leads.
            Ok(address) => {
                Ok(address.to_ipv4_mapped().map_or_else(|| format!("[{address}]"), |mapped| mapped.to_string()))
            }
            Err(_) => Err("the host of the address cannot be read".to_owned()),
        };
    }
    let name = lower.strip_suffix('.').unwrap_or(&lower);
    if name.is_empty() || name.split('.').any(str::is_empty) {
        return Err("the address has no host".to_owned());
    }
    if !name.is_ascii() {
        return Err("the host of the address is not in letters of ASCII; write it as `xn--…`".to_owned());
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        return Err("the host of the address cannot be read".to_owned());
    }
    // Numbers are hosts in several spellings; one of them is read.
    let last = name.rsplit('.').next().unwrap_or(name);
    let number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    if number && name.parse::<std::net::Ipv4Addr>().is_err() {
        return Err("the host of the address is a number that is not written as four".to_owned());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        // Whether a pattern lets it pass, and whether it refuses it; none is no address.
        let check = |pattern: &str, url: &str, want: Option<(bool, bool)>| {
            let got = Url::read(url).ok().map(|url| (url.matches(pattern), url.may_match(pattern)));
            assert_eq!(got, want, "{pattern} {url}");
        };
        let yes = Some((true, true));
        let no = Some((false, false));
        for url in [
            "https://docs.rs",
            "https://docs.rs/",
            "http://docs.rs/x?y#z",
            "HTTPS://DOCS.RS/x",
            "https://docs.rs.",
            "https://docs.rs:8443/x",
            "https://docs.rs?x=evil.org",
            "https://docs.rs#@evil.org",
        ] {
            check("domain:docs.rs", url, yes);
        }
        for url in [
            "https://evil.org/docs.rs",
            "https://docs.rs.evil.org/",
            "https://xdocs.rs",
            "https://evil.org?docs.rs",
            "https://evil.org#docs.rs",
            "https://127.0.0.1/",
            "https://[::1]/",
        ] {
            check("domain:docs.rs", url, no);
        }
        for none in [
            "https://docs.rs@evil.org/",
            "https://docs.rs:x@evil.org/",
            "https://docs.rs\\@evil.org",
            "docs.rs",
            "//docs.rs",
            "ftp://docs.rs",
            "file:///etc/passwd",
            "https://",
            "https://docs.rs /",
            "https://docs.rs\n",
            "https://docs。rs/",
            "https://d\u{f6}cs.rs",
            "https://docs.rs:x/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://127.1/",
            "javascript:alert(1)",
            "https:docs.rs",
            "https:/docs.rs",
            "https://%64ocs.rs/",
            "https://docs.rs/a/../b",
            "https://docs.rs/%2e%2E/b",
            "https://docs.rs/a/./b",
            "https://docs.rs/%2e/b",
            "https://docs.rs/.",
            "https://docs..rs/",
            "",
        ] {
            check("domain:docs.rs", none, None);
        }
        check("domain:docs.rs", "https://www.docs.rs/", Some((false, true)));
        check("domain:*.docs.rs", "https://www.docs.rs/", yes);
        check("domain:*.docs.rs", "https://docs.rs/", Some((false, true)));
        check("domain:*.docs.rs", "https://xdocs.rs/", no);
        check("domain:xn--dcs-sna.rs", "https://xn--dcs-sna.rs/", yes);
        check("https://docs.rs/*", "https://docs.rs/x", yes);
        check("https://docs.rs/*", "https://docs.rs:443/x", yes);
        check("https://docs.rs/*", "https://docs.rs.evil.org/x", no);
        check("https://docs.rs/*", "http://docs.rs/x", no);
        check("https://docs.rs/x", "https://docs.rs/x?y", no);
        check("domain:127.0.0.1", "http://127.0.0.1:80/", yes);
        check("docs.rs", "https://docs.rs/x", yes);
        // Other spellings of the same.
        for url in ["https://x.org/%61dmin/y", "https://x.org/adm%69n/y", "https://x.org/%61%64min/%79"] {
            check("https://x.org/admin/*", url, yes);
        }
        check("https://x.org/%61dmin/*", "https://x.org/admin/y", yes);
        check("https://x.org/a%2fb", "https://x.org/a%2Fb", yes);
        check("https://x.org/a/b", "https://x.org/a%2fb", no);
        check("https://x.org/50%*", "https://x.org/50%\u{e9}", yes);
        check("domain:127.0.0.1", "http://[::ffff:127.0.0.1]/", yes);
        check("domain:127.0.0.1", "http://[::ffff:7f00:1]:80/", yes);
        check("domain:[::ffff:7f00:1]", "http://127.0.0.1/", yes);
        check("domain:[0::1]", "http://[::1]/", yes);
    }
}
