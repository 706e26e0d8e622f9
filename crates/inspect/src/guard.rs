//! Admits only clients with the token and only requests from the page itself.
//!
//! The URL that the program prints contains a random token. The first request exchanges it for a
//! cookie that other sites' pages cannot send or read (`SameSite=Strict`, `HttpOnly`). Other
//! programs can send `Authorization: Bearer TOKEN`. Every request must have the page's own address
//! as its `Host`, which defeats other names that resolve to this machine (DNS rebinding). If there
//! is an `Origin`, it must be the page's own.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

use crate::error::{InspectError, Refusal};

/// What a client needs to be admitted.
#[derive(Debug)]
pub(crate) struct Guard {
    token: String,
    address: SocketAddr,
}

/// The page's content security policy. The page has no inline code or style, and loads nothing from
/// elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";
/// The headers of every response.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

impl Guard {
    /// A new token for the page at this address.
    pub(crate) fn new(address: SocketAddr) -> Result<Self, InspectError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| InspectError::System {
            what: "cannot get random numbers for the token",
            source: std::io::Error::other(error.to_string()),
        })?;
        let mut token = String::new();
        worldwire_core::value::push_hex(&mut token, &bytes);
        Ok(Self { token, address })
    }

    /// The address to open in the browser.
    pub(crate) fn url(&self) -> String {
        // Not every browser can connect to 0.0.0.0.
        let host = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
            IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        format!("http://{host}:{}/?token={}", self.address.port(), self.token)
    }

    /// The name contains the port, because cookies are shared by all ports of a machine.
    fn cookie(&self) -> String {
        format!("worldwire-{}", self.address.port())
    }

    /// Whether the request names one of the page's addresses. Names other than `localhost` are
    /// refused, because anybody's name can resolve to this machine.
    fn is_own_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let Some(host) = host.to_str().ok().and_then(|it| it.parse::<Authority>().ok()) else {
            return false;
        };
        if host.as_str().contains('@') {
            return false;
        }
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        let is_own_port = host.port_u16().unwrap_or(80) == self.address.port();
        let is_own_name = match name.parse::<IpAddr>() {
            Ok(ip) => self.address.ip().is_unspecified() || ip == self.address.ip(),
            Err(_) => name == "localhost" && self.is_loopback(),
        };
        is_own_port && is_own_name
    }

    fn is_loopback(&self) -> bool {
        self.address.ip().is_loopback() || self.address.ip().is_unspecified()
    }

    /// Whether the request has no origin or the page's own.
    fn is_own_origin(headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
        let own = format!("http://{host}");
        headers.get_all(header::ORIGIN).iter().all(|origin| origin.as_bytes() == own.as_bytes())
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let is_token = |text: &str| bool::from(text.as_bytes().ct_eq(self.token.as_bytes()));
        let cookie = self.cookie();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut pairs = cookies.flat_map(|all| all.split(';')).filter_map(|it| it.split_once('='));
        let bearer = headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
        pairs.any(|(name, value)| name.trim() == cookie && is_token(value.trim()))
            || bearer.and_then(|it| it.strip_prefix("Bearer ")).is_some_and(is_token)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    token: Option<String>,
}

/// The middleware around all routes.
pub(crate) async fn admit(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let entry = Query::<Entry>::try_from_uri(request.uri()).ok();
    let token = entry.and_then(|Query(entry)| entry.token);
    let is_entry = request.uri().path() == "/" && token.is_some();
    let mut response = if !guard.is_own_host(headers) {
        let text = "unknown host: use the address that `worldwire inspect` printed";
        Refusal::new(StatusCode::MISDIRECTED_REQUEST, text).into_response()
    } else if !Guard::is_own_origin(headers) {
        let text = "requests from other sites are refused";
        Refusal::new(StatusCode::FORBIDDEN, text).into_response()
    } else if is_entry {
        let given = token.unwrap_or_default();
        match bool::from(given.as_bytes().ct_eq(guard.token.as_bytes())) {
            true => enter(&guard),
            false => refused(),
        }
    } else if guard.has_token(headers) {
        next.run(request).await
    } else {
        refused()
    };
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refused() -> Response {
    let text = "open the address that `worldwire inspect` printed, with the token in it";
    Refusal::new(StatusCode::UNAUTHORIZED, text).into_response()
}

/// Sets the cookie. The page is opened by a refresh rather than a redirect: a browser would not send
/// the cookie after a redirect if the user followed a link on another site.
fn enter(guard: &Guard) -> Response {
    let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", guard.cookie(), guard.token);
    let page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
                <meta http-equiv=\"refresh\" content=\"0;url=/\"><title>worldwire</title>\
                <link rel=\"icon\" href=\"/icon.svg\">\
                <a href=\"/\">Open the page</a></html>";
    let kind = "text/html; charset=utf-8".to_owned();
    ([(header::SET_COOKIE, cookie), (header::CONTENT_TYPE, kind)], page).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_the_own_address_is_a_valid_host() {
        let guard = Guard::new("127.0.0.1:8080".parse().unwrap()).unwrap();
        let everywhere = Guard::new("0.0.0.0:8080".parse().unwrap()).unwrap();
        let cases = [
            ("127.0.0.1:8080", true, true),
            ("localhost:8080", true, true),
            ("192.0.2.1:8080", false, true),
            ("127.0.0.1:8081", false, false),
            ("127.0.0.1", false, false),
            ("evil.example:8080", false, false),
            ("127.0.0.1.evil.example:8080", false, false),
            ("localhost.evil.example:8080", false, false),
            ("user@127.0.0.1:8080", false, false),
            ("", false, false),
        ];
        for (host, is_own, is_own_everywhere) in cases {
            let headers = headers(&[(header::HOST, host)]);
            assert_eq!(guard.is_own_host(&headers), is_own, "{host}");
            assert_eq!(everywhere.is_own_host(&headers), is_own_everywhere, "{host}");
        }
        let mut two = headers(&[(header::HOST, "127.0.0.1:8080")]);
        two.append(header::HOST, "evil.example".parse().unwrap());
        assert!(!guard.is_own_host(&two) && !guard.is_own_host(&HeaderMap::new()));
    }

    #[test]
    fn the_token_is_a_cookie_or_a_header() {
        let guard = Guard::new("127.0.0.1:8080".parse().unwrap()).unwrap();
        let token = guard.token.clone();
        assert_eq!(token.len(), 64);
        assert_ne!(token, Guard::new(guard.address).unwrap().token);
        let has = |name: HeaderName, value: &str| guard.has_token(&headers(&[(name, value)]));
        assert!(has(header::COOKIE, &format!("a=b; worldwire-8080={token}")));
        assert!(has(header::AUTHORIZATION, &format!("Bearer {token}")));
        let wrong = [
            (header::COOKIE, format!("worldwire-8081={token}")),
            (header::COOKIE, format!("worldwire-8080={}", &token[..63])),
            (header::COOKIE, "worldwire-8080=".to_owned()),
            (header::AUTHORIZATION, format!("Basic {token}")),
            (header::AUTHORIZATION, "Bearer ".to_owned()),
        ];
        for (name, value) in wrong {
            assert!(!has(name, &value), "{value}");
        }
        assert!(guard.url().ends_with(&format!("127.0.0.1:8080/?token={token}")));
    }
}
