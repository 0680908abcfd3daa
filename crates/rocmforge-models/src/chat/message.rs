//! Messages of a conversation, and what else a template is given.

use std::str::FromStr;

use rocmforge_jinja::{Error, Input, Name};
use serde_json::Value as Json;

use super::ChatError;

/// Role of a message's author. A closed list, because many templates put the role between the marks of a control token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions for the whole conversation.
    System,
    /// As `System`, in newer models.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The answer of a tool.
    Tool,
    /// What a reranker judges a document by. No conversation has this role, nor the next.
    Query,
    /// What a reranker judges.
    Document,
}

impl Role {
    /// All roles of conversations.
    pub const ALL: [Role; 5] = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];

    /// The role as templates know it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Query => "query",
            Role::Document => "document",
        }
    }
}

impl FromStr for Role {
    type Err = ChatError;

    fn from_str(role: &str) -> Result<Self, ChatError> {
        Role::ALL
            .into_iter()
            .find(|known| known.as_str() == role)
            .ok_or_else(|| ChatError::UnknownRole {
                role: role.to_owned(),
                known: Role::ALL.map(Role::as_str).join(", "),
            })
    }
}

/// What a message says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// No content, as in a message that only calls tools. Templates do not see the key; one that wants to see `none` gets it by a null in
    /// [`Message::fields`].
    #[default]
    Absent,
    /// A text.
    Text(String),
    /// Parts such as `{"type": "text", "text": "..."}`.
    Parts(Vec<Json>),
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Content {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

/// A call of a tool by the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// By which its result names it.
    pub id: Option<String>,
    /// The function.
    pub name: String,
    /// Its arguments: an object, which most templates want, or a text of JSON, as the OpenAI API has it.
    pub arguments: Json,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Role of the author.
    pub role: Role,
    /// What they say.
    pub content: Content,
    /// What the model thought before it spoke. Templates see it as `reasoning_content` and as `thinking`.
    pub reasoning: Option<String>,
    /// The tools that the model calls.
    pub tool_calls: Vec<ToolCall>,
    /// The call whose result this is.
    pub tool_call_id: Option<String>,
    /// The name of the tool or of the person.
    pub name: Option<String>,
    /// Further keys, for templates that ask for them.
    pub fields: Vec<(String, Json)>,
}

impl Message {
    /// A message with a content only.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self {
            role,
            content: content.into(),
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            fields: Vec::new(),
        }
    }

    /// A message in the JSON of the OpenAI API. Keys with null count as absent, and unknown keys go into [`Message::fields`], as transformers
    /// has it. The reasoning may be called `reasoning_content`, `thinking` or `reasoning`.
    ///
    /// # Errors
    /// An unknown role; a known key of another type.
    pub fn from_json(json: &Json) -> Result<Self, ChatError> {
        let wrong = |key: &str, wanted| ChatError::Message {
            key: key.to_owned(),
            wanted,
        };
        let object = json.as_object().ok_or_else(|| wrong("message", "an object"))?;
        let text = |key: &str, value: &Json| {
            let text = value.as_str().map(str::to_owned);
            text.ok_or_else(|| wrong(key, "a text"))
        };
        let role = object.get("role").and_then(Json::as_str);
        let role = role.ok_or_else(|| wrong("role", "a text"))?.parse()?;
        let mut message = Self::new(role, Content::Absent);
        for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
            match key.as_str() {
                "role" => {}
                "content" => {
                    message.content = match value {
                        Json::String(text) => Content::Text(text.clone()),
                        Json::Array(parts) => Content::Parts(parts.clone()),
                        _ => return Err(wrong(key, "a text or a list of parts")),
                    };
                }
                "tool_calls" => {
                    let calls = value.as_array().ok_or_else(|| wrong(key, "a list"))?;
                    message.tool_calls = calls.iter().map(ToolCall::from_json).collect::<Result<_, _>>()?;
                }
                "tool_call_id" => message.tool_call_id = Some(text(key, value)?),
                "name" => message.name = Some(text(key, value)?),
                "reasoning_content" | "thinking" | "reasoning" => {}
                _ => message.fields.push((key.clone(), value.clone())),
            }
        }
        for key in ["reasoning_content", "thinking", "reasoning"] {
            if let Some(value) = object.get(key).filter(|value| !value.is_null()) {
                message.reasoning = Some(text(key, value)?);
                break;
            }
        }
        Ok(message)
    }

    /// The message as templates see it. Keys are in the order in which the API documents them.
    fn input(&self) -> Result<Input<'_>, Error> {
        let mut entries = Vec::new();
        if let Some(reasoning) = &self.reasoning {
            entries.push((Name::own("thinking"), Input::text(reasoning)));
        }
        entries.push((Name::own("role"), Input::own(self.role.as_str())));
        match &self.content {
            Content::Absent => {}
            Content::Text(text) => entries.push((Name::own("content"), Input::text(text))),
            Content::Parts(parts) => entries.push((Name::own("content"), Input::of_list(parts)?)),
        }
        if let Some(reasoning) = &self.reasoning {
            entries.push((Name::own("reasoning_content"), Input::text(reasoning)));
        }
        if !self.tool_calls.is_empty() {
            let calls = self.tool_calls.iter().map(ToolCall::input);
            entries.push((Name::own("tool_calls"), Input::List(calls.collect::<Result<_, _>>()?)));
        }
        for (key, value) in [("tool_call_id", &self.tool_call_id), ("name", &self.name)] {
            if let Some(value) = value {
                entries.push((Name::own(key), Input::text(value)));
            }
        }
        for (key, value) in &self.fields {
            entries.push((Name::Text(key.into()), Input::of_json(value)?));
        }
        Ok(Input::Dict(entries))
    }
}

impl ToolCall {
    /// A call in the JSON of the OpenAI API: `{"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}`.
    fn from_json(json: &Json) -> Result<Self, ChatError> {
        let wrong = |key: &str, wanted| ChatError::Message {
            key: key.to_owned(),
            wanted,
        };
        if json.get("type").is_some_and(|kind| kind != "function") {
            return Err(wrong("tool_calls[].type", "\"function\", the only kind of call"));
        }
        let function = json
            .get("function")
            .ok_or_else(|| wrong("tool_calls[].function", "there"))?;
        let name = function.get("name").and_then(Json::as_str);
        let arguments = function.get("arguments");
        Ok(Self {
            id: match json.get("id") {
                None | Some(Json::Null) => None,
                Some(id) => Some(
                    id.as_str()
                        .ok_or_else(|| wrong("tool_calls[].id", "a text"))?
                        .to_owned(),
                ),
            },
            name: name
                .ok_or_else(|| wrong("tool_calls[].function.name", "a text"))?
                .to_owned(),
            arguments: arguments
                .ok_or_else(|| wrong("tool_calls[].function.arguments", "there"))?
                .clone(),
        })
    }

    fn input(&self) -> Result<Input<'_>, Error> {
        let function = Input::Dict(vec![
            (Name::own("name"), Input::text(&self.name)),
            (Name::own("arguments"), Input::of_json(&self.arguments)?),
        ]);
        let mut entries = Vec::new();
        if let Some(id) = &self.id {
            entries.push((Name::own("id"), Input::text(id)));
        }
        entries.push((Name::own("type"), Input::own("function")));
        entries.push((Name::own("function"), function));
        Ok(Input::Dict(entries))
    }
}

/// Where the text of a conversation ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// After the last message.
    #[default]
    Message,
    /// Where the model's answer begins: `add_generation_prompt`.
    Answer,
    /// In the last message, after its content, which the model is to continue.
    Content,
}

/// What is rendered: messages, and what else templates ask for.
///
/// ```
/// use rocmforge_models::chat::{Conversation, End, Message, Role};
///
/// let messages = [Message::new(Role::User, "What is the weather in Oslo?")];
/// let tools = [serde_json::json!({
///     "type": "function",
///     "function": {"name": "weather", "description": "Weather of a place", "parameters": {"type": "object", "properties": {}}},
/// })];
/// let conversation = Conversation {
///     tools: Some(&tools),
///     end: End::Answer,
///     ..Conversation::new(&messages)
/// };
/// # assert_eq!(conversation.messages.len(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conversation<'a> {
    /// The messages.
    pub messages: &'a [Message],
    /// The tools that the model may call, as JSON schemas; `None` is Python's `None`, which is not the empty list.
    pub tools: Option<&'a [Json]>,
    /// Documents that the answer may use.
    pub documents: Option<&'a [Json]>,
    /// Further variables of this prompt, such as `enable_thinking`. Their content is trusted.
    pub variables: &'a [(&'a str, Json)],
    /// Where the text ends.
    pub end: End,
}

impl<'a> Conversation<'a> {
    /// Messages only, with the text after the last one.
    #[must_use]
    pub fn new(messages: &'a [Message]) -> Self {
        Self {
            messages,
            tools: None,
            documents: None,
            variables: &[],
            end: End::Message,
        }
    }

    /// Messages that the model is to answer.
    #[must_use]
    pub fn to_answer(messages: &'a [Message]) -> Self {
        Self {
            end: End::Answer,
            ..Self::new(messages)
        }
    }

    /// Messages, tools and documents as templates see them.
    pub(super) fn inputs(&self) -> Result<Vec<(&'static str, Input<'a>)>, Error> {
        let messages = self.messages.iter().map(Message::input);
        let list = |list: Option<&'a [Json]>| list.map_or(Ok(Input::None), Input::of_list);
        Ok(vec![
            ("messages", Input::List(messages.collect::<Result<_, _>>()?)),
            ("tools", list(self.tools)?),
            ("documents", list(self.documents)?),
            ("add_generation_prompt", Input::Bool(self.end == End::Answer)),
        ])
    }
}
