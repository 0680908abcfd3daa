//! Guard: looks at each request before its route does. Its host must be one of ours, its origin this server or one that is allowed, its key known.
//!
//! The host is looked at because a page of another site can let its own name mean 127.0.0.1, and then reads answers as its own (DNS rebinding).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::{App, Asker, StartError};
use crate::error::{ApiError, Kind};
use crate::keys::Keys;
use crate::options::ServerOptions;
use crate::page;
use crate::places::WithPlace;
use crate::trace::Trace;

/// Routes without a key, for supervisors. They show names of models and counts.
const OPEN: [&str; 3] = ["/health", "/ready", "/v1/health"];

/// Refuses an address that other machines reach, if there are no keys and that is not allowed.
pub(crate) fn check_address(options: &ServerOptions, keys: &Keys, address: SocketAddr) -> Result<(), StartError> {
    match keys.is_empty() && !address.ip().is_loopback() && !options.allow_without_keys {
        true => Err(StartError::NoKeys(address)),
        false => Ok(()),
    }
}

/// Checks the options that this module reads.
pub(crate) fn check(options: &ServerOptions) -> Result<(), StartError> {
    check_address(options, &options.keys, options.listen)?;
    if options.slots && !options.keys.is_empty() && options.admin_keys.is_empty() {
        return Err(StartError::NoAdmin);
    }
    for host in &options.hosts {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
        // The port of a Host header is not looked at.
        if host.is_empty() || !host.bytes().all(is_name) || without_port(host) != host {
            return Err(StartError::Name(host.clone(), "name of a host"));
        }
    }
    for origin in &options.origins {
        let uri: Option<Uri> = origin.parse().ok();
        let is_origin = uri.is_some_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some() && !origin.ends_with('/')
        });
        if !is_origin {
            return Err(StartError::Name(
                origin.clone(),
                "origin such as https://chat.example.org",
            ));
        }
    }
    Ok(())
}

/// The one value of a header. Two are refused: programs before and behind this one might take another each.
fn one<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(ApiError::invalid(format!("the header {name} is there twice")));
    }
    let text = value.map(HeaderValue::to_str).transpose();
    text.map_err(|_| ApiError::invalid(format!("the header {name} is no text")))
}

/// A host without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

fn is_own_host(options: &ServerOptions, host: &str) -> bool {
    let name = without_port(host);
    if name.eq_ignore_ascii_case("localhost") || options.hosts.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return true;
    }
    // An address is no name that another could let mean this machine.
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    bare.parse::<IpAddr>()
        .is_ok_and(|ip| ip.is_loopback() || !options.listen.ip().is_loopback())
}

/// Whether a page of this origin may ask: it is this server's own, or allowed.
fn allowed_origin(options: &ServerOptions, origin: &str, host: &str) -> Option<bool> {
    if options.origins.iter().any(|allowed| allowed == origin) {
        return Some(true);
    }
    let own = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    own.is_some_and(|own| own.eq_ignore_ascii_case(host)).then_some(false)
}

fn key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    if let Some(value) = one(headers, &header::AUTHORIZATION)? {
        let (scheme, key) = value.split_once(' ').unwrap_or((value, ""));
        return Ok(scheme.eq_ignore_ascii_case("bearer").then_some(key.trim()));
    }
    one(headers, &header::HeaderName::from_static("x-api-key"))
}

/// Looks at a request, and says who asks.
pub(crate) async fn look(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let options = app.options();
    let allowed = match examine(options, &request) {
        Ok(allowed) => allowed,
        Err(error) => return error.into_response(),
    };
    let asked_headers = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let is_preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (&allowed.origin, is_preflight) {
        (Some(_), true) => StatusCode::NO_CONTENT.into_response(),
        _ => match admit(&app, &request) {
            Ok(asker) => {
                let place = asker.place.clone();
                request.extensions_mut().insert(asker);
                let response = next.run(request).await;
                match place {
                    Some(place) => {
                        place.trace().status(response.status());
                        response.map(|body| WithPlace::body(body, place))
                    }
                    None => response,
                }
            }
            Err(error) => error.into_response(),
        },
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = allowed.origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
        let exposed = HeaderValue::from_static("x-request-id, retry-after");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        if is_preflight {
            let set = [
                (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
                (header::ACCESS_CONTROL_MAX_AGE, "600"),
            ];
            headers.extend(set.map(|(name, value)| (name, HeaderValue::from_static(value))));
            // The clients of OpenAI and Anthropic send many of their own.
            headers.extend(asked_headers.map(|asked| (header::ACCESS_CONTROL_ALLOW_HEADERS, asked)));
        }
    }
    response
}

/// What a request may.
struct Allowed {
    /// The origin of the page that may read the answer, if it is another server's.
    origin: Option<HeaderValue>,
}

fn examine(options: &ServerOptions, request: &Request) -> Result<Allowed, ApiError> {
    let headers = request.headers();
    // A request to a proxy has the host in the target.
    let target = request.uri().authority().map(|authority| authority.as_str());
    let host = one(headers, &header::HOST)?.or(target);
    let host = host.ok_or_else(|| ApiError::invalid("there is no Host header"))?;
    if !is_own_host(options, host) {
        return Err(ApiError::new(
            Kind::Forbidden,
            "this is not one of the server's host names (--host-name adds one)",
        ));
    }
    let Some(origin) = one(headers, &header::ORIGIN)? else {
        return Ok(Allowed { origin: None });
    };
    match allowed_origin(options, origin, host) {
        Some(true) => Ok(Allowed {
            origin: HeaderValue::from_str(origin).ok(),
        }),
        Some(false) => Ok(Allowed { origin: None }),
        None => Err(ApiError::new(
            Kind::Forbidden,
            "pages of this origin may not ask (--origin allows one)",
        )),
    }
}

/// Says who asks, and takes a place for a POST: its body is read, and what is in it is worked on, only then.
fn admit(app: &App, request: &Request) -> Result<Asker, ApiError> {
    let (owner, is_admin) = owner(&app.keys(), &app.admin_keys(), request)?;
    let mut asker = Asker {
        client: owner.clone().unwrap_or_else(|| client(request)),
        owner,
        is_admin,
        place: None,
    };
    if request.method() == Method::POST {
        let trace = Arc::new(Trace::begin(request));
        let place = app.take_place(asker.owner.as_deref(), Arc::clone(&trace));
        asker.place = Some(place.inspect_err(|error| trace.status(error.kind.status()))?);
    }
    Ok(asker)
}

/// A client without a key: its network address, of IPv6 that of its network. Headers that name another could be anybody's.
fn client(request: &Request) -> String {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    match peer.map(|ConnectInfo(peer)| peer.ip().to_canonical()) {
        None => String::new(),
        Some(IpAddr::V4(ip)) => ip.to_string(),
        Some(IpAddr::V6(ip)) => {
            let network = u128::from(ip) >> 64 << 64;
            Ipv6Addr::from(network).to_string()
        }
    }
}

/// The owner of the request's key, and whether it is an admin's. There is no owner if there are no keys, or the route needs none.
fn owner(keys: &Keys, admin_keys: &Keys, request: &Request) -> Result<(Option<String>, bool), ApiError> {
    if keys.is_empty() && admin_keys.is_empty() {
        return Ok((None, false));
    }
    let key = key(request.headers())?;
    // Both files are looked through, whichever has the key.
    let (owner, admin) = key.map_or((None, None), |key| (keys.owner(key), admin_keys.owner(key)));
    match (key, owner, admin) {
        // No name of the other file has a colon: admins share turns and cache with nobody else.
        (_, _, Some(admin)) => Ok((Some(format!("admin:{admin}")), true)),
        (_, Some(owner), None) => Ok((Some(owner.to_owned()), false)),
        // Everybody may ask what is not for admins.
        _ if keys.is_empty() => Ok((None, false)),
        (Some(_), None, None) => Err(ApiError::new(Kind::Unauthorized, "Invalid API Key")),
        (None, ..) if OPEN.contains(&request.uri().path()) || page::is_file(request.uri().path()) => Ok((None, false)),
        (None, ..) => Err(ApiError::new(
            Kind::Unauthorized,
            "Invalid API Key: send Authorization: Bearer KEY, or x-api-key",
        )),
    }
}
