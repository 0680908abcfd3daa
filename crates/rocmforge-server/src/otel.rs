//! OpenTelemetry: sends the spans of requests to a collector, by OTLP over HTTP.

use std::time::Duration;

use async_trait::async_trait;
use axum::http::{Request, Response};
use bytes::Bytes;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;

/// Variables one of which names a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// Time for one message to the collector.
const TIME: Duration = Duration::from_secs(10);
/// Most bytes of its answer.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Spans are sent until it is dropped; then those that wait are sent, within five seconds.
#[derive(Debug)]
pub struct Exporter(SdkTracerProvider);

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "some spans were not sent");
        }
    }
}

/// Why no spans are sent.
#[derive(Debug, thiserror::Error)]
#[error("OpenTelemetry: {0}")]
pub struct OtelError(#[from] ExporterBuildError);

/// Sends the spans of all requests to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, such as `http://localhost:4318`. The other standard
/// variables (`OTEL_SERVICE_NAME`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`) are read, too. `None` if no collector is named.
///
/// # Errors
/// A variable has a wrong value.
pub fn start() -> Result<Option<Exporter>, OtelError> {
    let is_named = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match ENDPOINTS.iter().any(is_named) {
        true => Ok(Some(to(None)?)),
        false => Ok(None),
    }
}

/// Sends spans to a URL, or where the environment says.
fn to(endpoint: Option<&str>) -> Result<Exporter, ExporterBuildError> {
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Client::new())
        .with_protocol(Protocol::HttpBinary);
    if let Some(endpoint) = endpoint {
        exporter = exporter.with_endpoint(endpoint);
    }
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("rocmforge");
    }
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter.build()?)
        .with_resource(resource.build())
        .build();
    opentelemetry::global::set_tracer_provider(provider.clone());
    Ok(Exporter(provider))
}

/// The client of the workspace. The exporter has a thread of its own, which may wait.
#[derive(Debug)]
struct Client(ureq::Agent);

impl Client {
    fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIME))
            .max_redirects(0);
        Self(config.http_status_as_error(false).build().into())
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(parts, &body[..]))?;
        let (parts, mut body) = answer.into_parts();
        let bytes = body.with_config().limit(LONGEST_ANSWER).read_to_vec()?;
        Ok(Response::from_parts(parts, bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use opentelemetry::trace::{Tracer, TracerProvider};

    use super::*;

    #[test]
    fn spans_go_to_a_collector() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let collector = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody sends");
            let mut bytes = Vec::new();
            let mut part = [0; 4096];
            // The name stands in the message as it is.
            while !bytes.windows(10).any(|window| window == b"a-question") {
                let read = stream.read(&mut part).expect("it sends");
                assert!(read > 0, "it ends without the span");
                bytes.extend_from_slice(&part[..read]);
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).expect("it reads");
            bytes
        });
        let exporter = to(Some(&format!("http://{address}/v1/traces"))).expect("an exporter");
        exporter.0.tracer("test").in_span("a-question", |_| ());
        drop(exporter);
        let bytes = collector.join().expect("no panic");
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        assert!(text.starts_with("post /v1/traces http/1.1"), "{text}");
        assert!(
            text.contains("application/x-protobuf") && text.contains("rocmforge"),
            "{text}"
        );
    }
}
