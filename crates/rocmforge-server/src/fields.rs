//! Fields of a request's JSON, read by name, with errors that name the field. Each field of a route is in its [description](crate::description::field).
//!
//! A field with null counts as absent. Fields that the server does not know are ignored, as clients of the OpenAI API expect. Known fields that
//! change an answer and are not supported are errors: [`Fields::refuse`].

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use futures_util::StreamExt;
use serde_json::{Map, Value};

use crate::app::{App, Asker};
use crate::description;
use crate::description::field::{Body as Description, Reader};
use crate::error::{ApiError, Kind};
use crate::options::Limits;

/// The object of a request's body.
#[derive(Clone, Default)]
pub(crate) struct Fields {
    values: Map<String, Value>,
    /// What the route reads; `None` for an object that is no whole body.
    description: Option<Description>,
}

impl Fields {
    /// An object that is no whole body.
    pub(crate) fn of(values: Map<String, Value>) -> Self {
        Self {
            values,
            description: None,
        }
    }

    /// Every field that a route reads must be in its description.
    fn check(&self, name: &str, reader: Reader) {
        debug_assert!(
            self.description.is_none_or(|known| known.has(name, reader)),
            "the field {name} is read as {reader:?}: add it so to the table of fields of its route, which describes it"
        );
    }

    /// A field that is there and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.check(name, Reader::Any);
        self.values.get(name).filter(|value| !value.is_null())
    }

    fn read<'a, T>(
        &'a self,
        name: &str,
        reader: Reader,
        wanted: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        self.check(name, reader);
        let Some(value) = self.get(name) else { return Ok(None) };
        let read = read(value).ok_or_else(|| ApiError::field(name, format!("it must be {wanted}")))?;
        Ok(Some(read))
    }

    pub(crate) fn bool(&self, name: &str) -> Result<bool, ApiError> {
        Ok(self
            .read(name, Reader::Bool, "true or false", Value::as_bool)?
            .unwrap_or(false))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        self.read(name, Reader::Text, "a text", Value::as_str)
    }

    /// The model's name, on a route whose API demands one.
    pub(crate) fn model(&self) -> Result<&str, ApiError> {
        let name = self.text("model")?;
        name.ok_or_else(|| ApiError::field("model", "name the model: GET /v1/models lists those that are there"))
    }

    pub(crate) fn list(&self, name: &str) -> Result<Option<&Vec<Value>>, ApiError> {
        self.read(name, Reader::List, "a list", Value::as_array)
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<&Map<String, Value>>, ApiError> {
        self.read(name, Reader::Object, "an object", Value::as_object)
    }

    /// A number as f32. One that f32 does not have is refused.
    pub(crate) fn float(&self, name: &str) -> Result<Option<f32>, ApiError> {
        self.read(name, Reader::Number, "a finite number", |value| {
            Some(value.as_f64()? as f32).filter(|number| number.is_finite())
        })
    }

    /// A whole number, negative ones too.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.read(name, Reader::Integer, "a whole number", |value| {
            let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64);
            value.as_i64().or_else(|| whole(value.as_f64()?))
        })
    }

    /// A whole number of `least..=most`.
    pub(crate) fn count(&self, name: &str, least: usize, most: usize) -> Result<Option<usize>, ApiError> {
        let Some(number) = self.integer(name)? else {
            return Ok(None);
        };
        let number = usize::try_from(number)
            .ok()
            .filter(|number| (least..=most).contains(number));
        let number = number.ok_or_else(|| ApiError::field(name, format!("it must be {least} to {most}")))?;
        Ok(Some(number))
    }

    /// A number of tokens; -1 is no limit.
    pub(crate) fn tokens(&self, name: &str) -> Result<Option<usize>, ApiError> {
        match self.integer(name)? {
            None => Ok(None),
            Some(-1) => Ok(Some(usize::MAX)),
            Some(number) => match usize::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(ApiError::field(
                    name,
                    "it must be a number of tokens, or -1 for no limit",
                )),
            },
        }
    }

    /// A text or a list of texts.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, ApiError> {
        let texts = self.read(name, Reader::Texts, "a text or a list of texts", |value| match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(texts) => texts.iter().map(|text| Some(text.as_str()?.to_owned())).collect(),
            _ => None,
        })?;
        Ok(texts.unwrap_or_default())
    }

    /// Texts that end an answer.
    pub(crate) fn stops(&self, name: &str, limits: &Limits) -> Result<Vec<String>, ApiError> {
        let mut stops = self.texts(name)?;
        stops.retain(|stop| !stop.is_empty());
        let (most, bytes) = (limits.stops, limits.stop_bytes);
        if stops.len() > most || stops.iter().any(|stop| stop.len() > bytes) {
            return Err(ApiError::field(
                name,
                format!("it may have {most} texts of at most {bytes} bytes"),
            ));
        }
        Ok(stops)
    }

    /// Refuses fields that would change the answer and that this server does not do. A value that asks for nothing is taken.
    pub(crate) fn refuse(&self, names: &[&str]) -> Result<(), ApiError> {
        for name in names {
            self.check(name, Reader::Refused);
            let asks = self.get(name).is_some_and(|value| match value {
                Value::Bool(asks) => *asks,
                Value::Array(list) => !list.is_empty(),
                Value::Object(object) => !object.is_empty(),
                Value::String(text) => !text.is_empty(),
                // 0 turns things off.
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::Null => false,
            });
            if asks {
                return Err(ApiError::not_supported(name, "this server does not support it"));
            }
        }
        Ok(())
    }
}

/// Whether a request may have a body of JSON that does not say so, as ollama's may: clients send no type, and `curl -d` that of forms. A form's fields
/// are encoded, so none is JSON; whatever else of a page sends these types has an `Origin`, which the guard looks at. Forms can spell JSON as text/plain.
fn may_be_unsaid(path: &str, media_type: Option<&str>) -> bool {
    path.starts_with("/api/")
        && media_type.is_none_or(|given| given.eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}

/// Reads the body within its limits of bytes and time, and only if it says that it is JSON: a page of another origin cannot send that without
/// asking first.
impl FromRequest<App> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let media_type = request.headers().get(header::CONTENT_TYPE);
        let media_type = media_type.map(|value| value.to_str().unwrap_or_default());
        let essence = media_type.map(|given| given.split(';').next().unwrap_or_default().trim());
        let is_json = essence.is_some_and(|given| given.eq_ignore_ascii_case("application/json"));
        if !is_json && !may_be_unsaid(request.uri().path(), essence) {
            return Err(ApiError::new(
                Kind::MediaType,
                "the body must be JSON: send Content-Type: application/json",
            ));
        }
        // A small body could become a large one.
        let encodings = request.headers().get_all(header::CONTENT_ENCODING);
        if encodings
            .iter()
            .any(|given| !given.as_bytes().eq_ignore_ascii_case(b"identity"))
        {
            return Err(ApiError::new(
                Kind::MediaType,
                "the body must come as it is: nothing is decompressed, so send it without Content-Encoding",
            ));
        }
        let description = description::body(request.uri().path());
        let limits = &app.options().limits;
        let place = request
            .extensions()
            .get::<Asker>()
            .and_then(|asker| asker.place.clone());
        let place = place.ok_or_else(|| ApiError::new(Kind::Internal, "the request has no place"))?;
        let count = |bytes| place.add_bytes(bytes, limits.all_body_bytes);
        let body = read(request.into_body(), limits.body_bytes, limits.read_time, count).await?;
        // serde_json refuses what is nested deeper than 128.
        let value = serde_json::from_slice(&body);
        match value.map_err(|error| ApiError::invalid(format!("the body is no JSON: {error}")))? {
            Value::Object(mut object) => {
                for (name, value) in &app.options().defaults {
                    let entry = object.entry(name.as_str()).or_insert(Value::Null);
                    if entry.is_null() {
                        value.clone_into(entry);
                    }
                }
                Ok(Self {
                    values: object,
                    description,
                })
            }
            _ => Err(ApiError::invalid("the body must be a JSON object")),
        }
    }
}

/// Reads a body of at most `most` bytes. `count` may refuse the next ones.
async fn read(
    body: Body,
    most: usize,
    time: Duration,
    count: impl Fn(usize) -> Result<(), ApiError>,
) -> Result<Vec<u8>, ApiError> {
    let too_large = || ApiError::new(Kind::TooLarge, format!("the body has more than {most} bytes"));
    let collect = async {
        let mut bytes = Vec::new();
        let mut frames = body.into_data_stream();
        while let Some(frame) = frames.next().await {
            let frame = frame.map_err(|_| ApiError::invalid("the body did not come whole"))?;
            if bytes.len() + frame.len() > most {
                return Err(too_large());
            }
            count(frame.len())?;
            bytes.extend_from_slice(&frame);
        }
        Ok(bytes)
    };
    let in_time = tokio::time::timeout(time, collect).await;
    in_time.unwrap_or_else(|_| {
        let seconds = time.as_secs();
        Err(ApiError::new(
            Kind::Timeout,
            format!("the body did not come within {seconds} s"),
        ))
    })
}
