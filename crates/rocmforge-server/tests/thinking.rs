//! Thinking: what a model thinks is separated from what it says, in each API, whole and streamed.

mod common;

use axum::http::StatusCode;
use common::{post, post_stream, tiny_gguf};
use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Array, Gguf, TensorType, Value as Meta, Writer};
use rocmforge_models::chat::ChatTemplate;
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions, Model};
use rocmforge_server::{App, LoadError, Loaded, ServerOptions, Source};
use serde_json::{Value, json};

/// Types of tokens in GGUF.
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
/// The token of the small model that ends its texts.
const EOS: usize = 318;

/// A model that says these tokens in turn, whatever it is asked: the output of each is the embedding of the one before it.
fn scripted(script: &[(&str, i32)]) -> Model {
    let gguf = Gguf::open(tiny_gguf()).expect("a committed model");
    let (width, old) = (32, 320);
    let tokens = old + script.len();
    let mut writer = Writer::new();
    for (key, value) in gguf.metadata().iter() {
        let value = match (key, value.clone()) {
            ("tokenizer.ggml.tokens", Meta::Array(Array::String(mut texts))) => {
                texts.extend(script.iter().map(|(text, _)| (*text).to_owned()));
                texts.into()
            }
            ("tokenizer.ggml.token_type", Meta::Array(Array::I32(mut types))) => {
                types.extend(script.iter().map(|(_, ty)| *ty));
                types.into()
            }
            ("llama.vocab_size", _) => (tokens as u32).into(),
            (_, value) => value,
        };
        writer.metadata(key, value).expect("a key");
    }
    // Place 0 of a row is that of all tokens outside the script.
    let (mut embedding, mut output) = (vec![0f32; tokens * width], vec![0f32; tokens * width]);
    for token in 0..old {
        embedding[token * width] = 1.0;
    }
    for index in 0..script.len() {
        embedding[(old + index) * width + index + 1] = 1.0;
        output[(old + index) * width + index] = 9.0;
    }
    output[EOS * width + script.len()] = 9.0;
    for tensor in gguf.tensors() {
        let count: usize = tensor.dims.iter().product();
        let (dims, numbers) = match tensor.name.as_str() {
            "token_embd.weight" => (vec![width, tokens], embedding.clone()),
            "output.weight" => (vec![width, tokens], output.clone()),
            "output_norm.weight" => (tensor.dims.to_vec(), vec![1.0; count]),
            _ => (tensor.dims.to_vec(), vec![0.0; count]),
        };
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        writer
            .tensor(&tensor.name, &dims, TensorType::F32, bytes)
            .expect("a tensor");
    }
    let gguf = Gguf::from_bytes(writer.to_bytes().expect("a file")).expect("as it was written");
    Model::from_gguf(gguf).expect("a model")
}

struct Script(&'static [(&'static str, i32)], &'static str);

impl Source for Script {
    fn load(&self) -> Result<Loaded, LoadError> {
        let model = scripted(self.0);
        let server = Server::start(ServeOptions::default(), move || {
            let engine = Engine::new(CpuBackend::with_threads(1), &model, EngineOptions::default())?;
            Ok(Generator::new(engine, model.tokenizer()?))
        })?;
        Ok(Loaded {
            template: Some(ChatTemplate::new(self.1, None, None).expect("a template")),
            ..Loaded::new(server)
        })
    }
}

fn app(script: &'static [(&'static str, i32)], template: &'static str) -> App {
    let source = Box::new(Script(script, template)) as Box<dyn Source>;
    App::new(ServerOptions::default(), [("script".to_owned(), source)]).expect("the options make sense")
}

/// A template that shows messages, and what the model thought before the last.
const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {% if m.reasoning_content %}<think>{{ m.reasoning_content }}\
                        </think>{% endif %}{{ m.content }}\n{% endfor %}assistant: ";
/// One that begins the thinking itself.
const OPENS: &str = "{% for m in messages %}{{ m.role }}: {{ m.content.split('</think>')[-1] }}\n{% endfor %}\
                     assistant: {{ '<think>\n' if enable_thinking is not defined or enable_thinking else '' }}";

const THINKS: &[(&str, i32)] = &[
    ("<th", USER_DEFINED),
    ("ink>\n", USER_DEFINED),
    ("two and", USER_DEFINED),
    (" two\n</", USER_DEFINED),
    ("think", USER_DEFINED),
    (">\n\nfo", USER_DEFINED),
    ("ur", USER_DEFINED),
];

fn messages() -> Value {
    json!([{"role": "user", "content": "2 + 2"}])
}

/// A request to each route.
fn request() -> Value {
    json!({"model": "script", "messages": messages(), "input": "2 + 2", "max_tokens": 40, "temperature": 0})
}

fn streamed() -> Value {
    let mut request = request();
    request["stream"] = true.into();
    request
}

/// The texts of a field in a stream.
fn texts(events: &[(String, Value)], pointer: &str) -> String {
    let texts = events.iter().filter_map(|(_, event)| event.pointer(pointer)?.as_str());
    texts.collect()
}

/// What the three APIs say, whole and streamed, must be this thought and this text.
async fn check(app: &App, thought: &str, text: &str) {
    let (status, _, chat) = post(app, "/v1/chat/completions", request()).await;
    assert_eq!(status, StatusCode::OK, "{chat}");
    let message = &chat["choices"][0]["message"];
    assert_eq!(message["reasoning_content"].as_str().unwrap_or_default(), thought);
    assert_eq!(message["content"], text);
    let events = post_stream(app, "/v1/chat/completions", streamed()).await;
    assert_eq!(texts(&events, "/choices/0/delta/reasoning_content"), thought);
    assert_eq!(texts(&events, "/choices/0/delta/content"), text);

    let (status, _, whole) = post(app, "/v1/messages", request()).await;
    assert_eq!(status, StatusCode::OK, "{whole}");
    let mut content = Vec::new();
    if !thought.is_empty() {
        content.push(json!({"type": "thinking", "thinking": thought, "signature": ""}));
    }
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text, "citations": null}));
    }
    assert_eq!(whole["content"], json!(content));
    let events = post_stream(app, "/v1/messages", streamed()).await;
    assert_eq!(texts(&events, "/delta/thinking"), thought);
    assert_eq!(texts(&events, "/delta/text"), text);
    let blocks: Vec<&str> = events
        .iter()
        .filter_map(|(_, event)| event.pointer("/content_block/type")?.as_str())
        .collect();
    let kinds: Vec<&str> = content.iter().filter_map(|block| block["type"].as_str()).collect();
    assert_eq!(blocks, kinds);

    let (status, _, whole) = post(app, "/v1/responses", request()).await;
    assert_eq!(status, StatusCode::OK, "{whole}");
    let of_kind = |kind: &str| {
        let items = whole["output"].as_array().expect("items").iter();
        let item = items.clone().find(|item| item["type"] == kind);
        item.map_or(String::new(), |item| {
            item["content"][0]["text"].as_str().expect("a text").to_owned()
        })
    };
    assert_eq!(
        (of_kind("reasoning").as_str(), of_kind("message").as_str()),
        (thought, text)
    );
    let events = post_stream(app, "/v1/responses", streamed()).await;
    let of_kind = |kind: &str| {
        let events = events.iter().filter(|(name, _)| name == kind);
        events
            .map(|(_, event)| event["delta"].as_str().expect("a text"))
            .collect::<String>()
    };
    assert_eq!(of_kind("response.reasoning_text.delta"), thought);
    assert_eq!(of_kind("response.output_text.delta"), text);
    let last = &events.last().expect("events").1["response"];
    let kinds = |response: &Value| -> Vec<Value> {
        let items = response["output"].as_array().expect("items").iter();
        items
            .map(|item| json!([item["type"], item["content"], item["status"]]))
            .collect()
    };
    assert_eq!(kinds(last), kinds(&whole));
    assert_eq!(last["usage"], whole["usage"]);

    for (path, place) in [("/api/chat", "/message"), ("/api/generate", "")] {
        for think in [json!(null), json!(true), json!("high")] {
            if thought.is_empty() && think != json!(null) {
                continue;
            }
            let mut request = ollama();
            request["think"] = think;
            let (status, _, whole) = post(app, path, request.clone()).await;
            assert_eq!(status, StatusCode::OK, "{whole}");
            let said = if place.is_empty() {
                "/response"
            } else {
                "/message/content"
            };
            let shown =
                |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            let thoughts = format!("{place}/thinking");
            assert_eq!(shown(&whole, &thoughts).unwrap_or_default(), thought, "{path}");
            assert_eq!(shown(&whole, said).as_deref(), Some(text), "{path}");
            request["stream"] = true.into();
            let values = lines(app, path, &request).await;
            let joined = |pointer: &str| {
                values
                    .iter()
                    .filter_map(|value| shown(value, pointer))
                    .collect::<String>()
            };
            assert_eq!(
                (joined(&thoughts).as_str(), joined(said).as_str()),
                (thought, text),
                "{path}"
            );
        }
    }
}

/// A request to ollama's routes.
fn ollama() -> Value {
    let options = json!({"temperature": 0, "num_predict": 40});
    json!({"model": "script", "messages": messages(), "prompt": "2 + 2", "stream": false, "options": options})
}

/// The values of an answer of ollama's, one a line.
async fn lines(app: &App, path: &str, json: &Value) -> Vec<Value> {
    let asked = common::request("POST", path).header("content-type", "application/json");
    let asked = asked.body(json.to_string().into()).expect("a request");
    let (status, _, body) = common::send(app, asked).await;
    let body = String::from_utf8(body).expect("UTF-8");
    assert_eq!(status, StatusCode::OK, "{body}");
    body.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[tokio::test]
async fn a_model_that_does_not_think_cannot_be_asked_to_by_clients_of_ollama() {
    let app = app(&[("four", USER_DEFINED)], "{{ messages[-1].content }}");
    for path in ["/api/chat", "/api/generate"] {
        for (think, wanted) in [
            (json!(true), StatusCode::BAD_REQUEST),
            (json!("high"), StatusCode::BAD_REQUEST),
            (json!(false), StatusCode::OK),
            (json!(null), StatusCode::OK),
        ] {
            let mut request = ollama();
            request["think"] = think.clone();
            let (status, _, answer) = post(&app, path, request).await;
            assert_eq!(status, wanted, "{path} {think}: {answer}");
            if wanted == StatusCode::BAD_REQUEST {
                assert_eq!(answer["error"], "\"script\" does not support thinking");
            }
        }
        let mut request = ollama();
        request["think"] = "a lot".into();
        let (status, _, answer) = post(&app, path, request).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(
            answer["error"],
            "think: it must be true, false, or one of low, medium, high, max"
        );
    }
    let (_, _, shown) = post(&app, "/api/show", json!({"model": "script"})).await;
    assert_eq!(shown["capabilities"], json!(["completion"]));
}

#[tokio::test]
async fn an_answer_without_thinking_stays_whole_for_clients_of_ollama() {
    let app = app(THINKS, TEMPLATE);
    let mut request = ollama();
    request["think"] = false.into();
    let whole = "<think>\ntwo and two\n</think>\n\nfour";
    let (_, _, answer) = post(&app, "/api/chat", request.clone()).await;
    assert_eq!(answer["message"], json!({"role": "assistant", "content": whole}));
    let (_, _, answer) = post(&app, "/api/generate", request.clone()).await;
    assert_eq!((&answer["response"], answer.get("thinking")), (&json!(whole), None));
    // So does the answer to a raw prompt, unless the request wants the thoughts.
    request["raw"] = true.into();
    for (think, said) in [(json!(null), whole), (json!(true), "four")] {
        request["think"] = think;
        let (_, _, answer) = post(&app, "/api/generate", request.clone()).await;
        assert_eq!(answer["response"], said);
    }
    let (_, _, shown) = post(&app, "/api/show", json!({"model": "script"})).await;
    assert_eq!(shown["capabilities"], json!(["completion", "thinking"]));
}

#[tokio::test]
async fn marks_that_are_cut_between_tokens_are_found() {
    let app = app(THINKS, TEMPLATE);
    check(&app, "two and two", "four").await;
    let (_, _, chat) = post(&app, "/v1/chat/completions", request()).await;
    // Four tokens came between the first mark and the last part of the second.
    assert_eq!(chat["usage"]["completion_tokens_details"]["reasoning_tokens"], 4);
    // The token that ends the text is one of them.
    assert_eq!(chat["usage"]["completion_tokens"], 8);
}

#[tokio::test]
async fn a_prompt_that_opens_the_thinking_is_seen() {
    let app = app(&THINKS[2..], OPENS);
    check(&app, "two and two", "four").await;
    // Without thinking the same text is all said.
    for thinking in [
        json!({"chat_template_kwargs": {"enable_thinking": false}}),
        json!({"reasoning_effort": "none"}),
    ] {
        let mut request = request();
        let fields = request.as_object_mut().expect("an object");
        fields.extend(thinking.as_object().expect("an object").clone());
        let (_, _, chat) = post(&app, "/v1/chat/completions", request).await;
        assert_eq!(
            chat["choices"][0]["message"]["content"],
            "two and two\n</think>\n\nfour"
        );
    }
    let mut request = request();
    request["thinking"] = json!({"type": "disabled"});
    let (_, _, whole) = post(&app, "/v1/messages", request).await;
    assert_eq!(whole["content"][0]["text"], "two and two\n</think>\n\nfour");
}

#[tokio::test]
async fn marks_that_are_control_tokens_are_found() {
    const SCRIPT: &[(&str, i32)] = &[
        ("[THINK]", CONTROL),
        ("hm", USER_DEFINED),
        ("[/THINK]", CONTROL),
        ("four", USER_DEFINED),
    ];
    // This template knows nothing of them: they are tokens of the vocabulary.
    check(&app(SCRIPT, "{{ messages[-1].content }}"), "hm", "four").await;
}

#[tokio::test]
async fn what_may_begin_a_stop_text_is_thought_before_the_mark() {
    const SCRIPT: &[(&str, i32)] = &[
        ("[THINK]", CONTROL),
        ("option ", USER_DEFINED),
        ("E", USER_DEFINED),
        ("[/THINK]", CONTROL),
        ("four", USER_DEFINED),
    ];
    let app = app(SCRIPT, "{{ messages[-1].content }}");
    let mut request = request();
    request["stop"] = json!(["END"]);
    let (_, _, chat) = post(&app, "/v1/chat/completions", request.clone()).await;
    let message = &chat["choices"][0]["message"];
    assert_eq!(
        (&message["reasoning_content"], &message["content"]),
        (&json!("option E"), &json!("four"))
    );
    request["stop_sequences"] = json!(["END"]);
    let (_, _, whole) = post(&app, "/v1/messages", request).await;
    assert_eq!(whole["content"][0]["thinking"], "option E");
    assert_eq!(whole["content"][1]["text"], "four");
}

#[tokio::test]
async fn instructions_and_a_developers_message_are_one() {
    // As the templates of many models, it takes instructions at the begin only, and roles in turn.
    const TURNS: &str = "{% for m in messages %}{% if (m.role == 'system') != (loop.first and m.role == 'system') %}\
                         {{ raise_exception('roles in turn') }}{% endif %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
    let app = app(&[("four", USER_DEFINED)], TURNS);
    let input = json!([
        {"role": "developer", "content": "use metric units"},
        {"role": "user", "content": "hi"},
    ]);
    let request = json!({"model": "script", "instructions": "be brief", "input": input, "max_output_tokens": 4});
    let (status, _, answer) = post(&app, "/v1/responses", request).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

#[tokio::test]
async fn an_answer_that_ends_while_the_model_thinks_has_no_text() {
    check(&app(&THINKS[..3], TEMPLATE), "two and", "").await;
}

#[tokio::test]
async fn marks_further_on_are_text() {
    const SCRIPT: &[(&str, i32)] = &[("a <think>", USER_DEFINED), ("b</think> c", USER_DEFINED)];
    check(&app(SCRIPT, TEMPLATE), "", "a <think>b</think> c").await;
}

#[tokio::test]
async fn a_client_may_want_the_whole_text() {
    let app = app(THINKS, TEMPLATE);
    let mut request = request();
    request["reasoning_format"] = "none".into();
    let (_, _, chat) = post(&app, "/v1/chat/completions", request.clone()).await;
    let message = &chat["choices"][0]["message"];
    assert_eq!(message["content"], "<think>\ntwo and two\n</think>\n\nfour");
    assert_eq!(message.get("reasoning_content"), None);
    request["reasoning_format"] = "other".into();
    let (status, _, error) = post(&app, "/v1/chat/completions", request).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["param"], "reasoning_format");
}

#[tokio::test]
async fn thoughts_of_earlier_answers_reach_the_template() {
    let app = app(&[("four", USER_DEFINED)], TEMPLATE);
    let tokens = |thought: bool| {
        let mut said = vec![json!({"type": "text", "text": "4"})];
        let mut items = vec![json!({"role": "user", "content": "2 + 2"})];
        if thought {
            said.insert(0, json!({"type": "thinking", "thinking": "hm", "signature": ""}));
            said.insert(1, json!({"type": "redacted_thinking", "data": "x"}));
            items.push(json!({
                "type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]
            }));
        }
        let messages = json!([
            {"role": "user", "content": "2 + 2"},
            {"role": "assistant", "content": said},
            {"role": "user", "content": "3 + 3"},
        ]);
        items.push(json!({"role": "assistant", "content": [{"type": "output_text", "text": "4", "annotations": []}]}));
        items.push(json!({"role": "user", "content": "3 + 3"}));
        (
            json!({"messages": messages}),
            json!({"model": "script", "input": items}),
        )
    };
    for (path, place) in [("/v1/messages/count_tokens", 0), ("/v1/responses/input_tokens", 1)] {
        let mut counts = Vec::new();
        for thought in [false, true] {
            let requests = tokens(thought);
            let request = [requests.0, requests.1][place].clone();
            let (status, _, answer) = post(&app, path, request).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            counts.push(answer["input_tokens"].as_u64().expect("a number"));
        }
        // Each character is a token, but "hi" is one.
        assert_eq!(counts[1] - counts[0], "<think>hm</think>".len() as u64 - 2, "{path}");
    }
}

#[tokio::test]
async fn the_routes_of_openai_demand_a_model_and_those_of_llama_cpp_do_not() {
    let app = app(&[("four", USER_DEFINED)], TEMPLATE);
    let mut request = request();
    request.as_object_mut().expect("an object").remove("model");
    let (status, _, error) = post(&app, "/v1/chat/completions", request.clone()).await;
    assert_eq!(
        (status, &error["error"]["param"]),
        (StatusCode::BAD_REQUEST, &json!("model"))
    );
    let (status, _, chat) = post(&app, "/chat/completions", request).await;
    assert_eq!((status, &chat["model"]), (StatusCode::OK, &json!("script")));
}
