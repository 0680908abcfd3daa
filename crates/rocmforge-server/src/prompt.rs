//! Prompts: messages of a request as the model's template has them.

use std::sync::Arc;

use rocmforge_models::chat::{Content, Conversation, End, Message, Role};
use rocmforge_models::tokenizer::Piece;
use serde_json::Value;

use crate::app::{App, Asker};
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::registry::Lease;

/// How much a model is asked to think.
pub(crate) const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/// A conversation to answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chat {
    pub(crate) messages: Vec<Message>,
    /// Variables of the template; their names are ours, never the client's.
    pub(crate) variables: Vec<(&'static str, Value)>,
    /// The last message is one of the model, which it goes on with.
    pub(crate) continues: bool,
    /// The prompt ends with the last message: no answer begins.
    pub(crate) ends: bool,
    /// Tools that the template describes.
    pub(crate) tools: Option<Vec<Value>>,
    /// Neighbours of the same role are one message, as in the APIs whose contents are lists.
    pub(crate) joins: bool,
}

/// The number of tokens of a request's prompt, for a route that counts and gives no answer. `read` is the dialect's way to read a conversation.
pub(crate) async fn count(
    app: &App,
    asker: &Asker,
    fields: &Fields,
    read: fn(&Fields) -> Result<Chat, ApiError>,
) -> Result<usize, ApiError> {
    let chat = read(fields)?;
    let lease = app.lease(fields.text("model")?).await?;
    chat.count(asker, &lease).await
}

/// Messages in the JSON of the OpenAI API.
pub(crate) fn messages(list: &[Value]) -> Result<Vec<Message>, ApiError> {
    if list.is_empty() {
        return Err(ApiError::field("messages", "there is no message"));
    }
    let message = |json: &Value| {
        let mut message = Message::from_json(json)?;
        if let Content::Parts(parts) = &message.content {
            message.content = text_of_parts("messages", parts)?.into();
        }
        Ok(message)
    };
    list.iter().map(message).collect()
}

/// A content: a text, or a list of parts.
pub(crate) fn text(name: &str, content: &Value) -> Result<String, ApiError> {
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => text_of_parts(name, parts),
        _ => Err(ApiError::field(name, "a content must be a text or a list of parts")),
    }
}

/// The text of parts, one a line: many templates know no parts.
pub(crate) fn text_of_parts<'a>(name: &str, parts: impl IntoIterator<Item = &'a Value>) -> Result<String, ApiError> {
    let text = |part: &'a Value| {
        let kind = match part.get("type") {
            None | Some(Value::Null) => "text",
            Some(Value::String(kind)) => kind,
            Some(_) => return Err(ApiError::field(name, "the type of a part must be a text")),
        };
        let text = match kind {
            "text" | "input_text" | "output_text" => part.get("text"),
            "refusal" => part.get("refusal"),
            _ => {
                let text = format!("a part of type {kind:?} is not supported: the model takes text only");
                return Err(ApiError::not_supported(name, text));
            }
        };
        text.and_then(Value::as_str)
            .ok_or_else(|| ApiError::field(name, format!("a part of type {kind:?} must have a text")))
    };
    let texts: Vec<&str> = parts.into_iter().map(text).collect::<Result<_, _>>()?;
    Ok(texts.join("\n"))
}

/// Messages, of which neighbours of the same role have become one: templates may want roles in turn.
fn joined_roles(messages: Vec<Message>) -> Vec<Message> {
    let mut joined: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match (joined.last_mut(), &message.content) {
            (
                Some(Message {
                    role,
                    content: Content::Text(all),
                    reasoning: None,
                    ..
                }),
                Content::Text(text),
            ) if *role == message.role && message.reasoning.is_none() => {
                all.push('\n');
                all.push_str(text);
            }
            _ => joined.push(message),
        }
    }
    joined
}

/// Pieces as one text.
pub(crate) fn joined(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

impl Chat {
    /// Adds a message.
    pub(crate) fn push(&mut self, role: Role, text: String, reasoning: Option<String>) {
        self.messages.push(Message {
            reasoning,
            ..Message::new(role, text)
        });
    }

    /// Asks the model to think this much.
    pub(crate) fn set_effort(&mut self, name: &str, effort: &str) -> Result<(), ApiError> {
        let known = EFFORTS.contains(&effort);
        if !known {
            return Err(ApiError::field(
                name,
                format!("it must be one of {}", EFFORTS.join(", ")),
            ));
        }
        self.variables.push(("reasoning_effort", effort.into()));
        if effort == "none" {
            self.set_thinking(false);
        }
        Ok(())
    }

    /// Asks the model to think, or not to.
    pub(crate) fn set_thinking(&mut self, thinks: bool) {
        if !self.variables.iter().any(|(name, _)| *name == "enable_thinking") {
            self.variables.push(("enable_thinking", thinks.into()));
        }
    }

    /// The prompt, in pieces: what users wrote stays text, whatever control tokens it spells.
    pub(crate) async fn render(self, asker: &Asker, lease: &Arc<Lease>) -> Result<Vec<Piece>, ApiError> {
        self.with_pieces(asker, lease, |pieces, _| Ok(pieces)).await
    }

    /// The number of the prompt's tokens.
    async fn count(self, asker: &Asker, lease: &Arc<Lease>) -> Result<usize, ApiError> {
        let count = |pieces: Vec<Piece>, lease: &Lease| {
            let ids = lease.handle().tokenizer().encode_pieces(&pieces);
            Ok(ids.map_err(|error| ApiError::field("messages", error))?.len())
        };
        self.with_pieces(asker, lease, count).await
    }

    async fn with_pieces<T: Send + 'static>(
        mut self,
        asker: &Asker,
        lease: &Arc<Lease>,
        make: impl FnOnce(Vec<Piece>, &Lease) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (place, lease) = (asker.place.clone(), Arc::clone(lease));
        // A template may work for a second, and goes on if the client goes away.
        let render = tokio::task::spawn_blocking(move || {
            let _place = place;
            let Some(template) = &lease.loaded().template else {
                let text = format!(
                    "the model {} has no chat template: it was not made for conversations",
                    lease.name()
                );
                return Err(ApiError::invalid(text));
            };
            // Most models know one role for instructions.
            if !template.source().contains(Role::Developer.as_str()) {
                let developers = self
                    .messages
                    .iter_mut()
                    .filter(|message| message.role == Role::Developer);
                developers.for_each(|message| message.role = Role::System);
            }
            if self.joins {
                self.messages = joined_roles(self.messages);
            }
            let is_last_own = self
                .messages
                .last()
                .is_some_and(|message| message.role == Role::Assistant);
            let conversation = Conversation {
                variables: &self.variables,
                tools: self.tools.as_deref(),
                end: match (self.continues && is_last_own, self.ends) {
                    (true, _) => End::Content,
                    (_, true) => End::Message,
                    _ => End::Answer,
                },
                ..Conversation::new(&self.messages)
            };
            let pieces = template.render_pieces(&conversation, lease.handle().tokenizer())?;
            make(pieces, &lease)
        });
        let rendered = render.await;
        rendered.unwrap_or_else(|_| Err(ApiError::new(Kind::Internal, "the template could not be rendered")))
    }
}
