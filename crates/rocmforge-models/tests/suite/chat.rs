//! Chat templates: what a conversation gives to them, whose words are trusted, and what is refused. What they print is compared with Python in
//! `chat_python`, their limits are in the target `chat_limits`.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rocmforge_gguf::Gguf;
use rocmforge_models::chat::{ChatError, ChatTemplate, Content, Conversation, End, MAX_WORK, Message, Role, ToolCall};
use rocmforge_models::tokenizer::{Piece, Tokenizer};
use serde_json::json;

fn render(source: &str, conversation: &Conversation<'_>) -> Result<String, ChatError> {
    ChatTemplate::new(source, Some("<s>"), Some("</s>"))
        .expect("a template")
        .render(conversation)
}

fn call(arguments: serde_json::Value) -> Message {
    Message {
        tool_calls: vec![ToolCall {
            id: Some("call1".to_owned()),
            name: "weather".to_owned(),
            arguments,
        }],
        ..Message::new(Role::Assistant, Content::Absent)
    }
}

#[test]
fn dates_are_variables_where_the_program_gives_them() {
    // As the templates of Llama 3 and Firefunction ask for them.
    let source = "{{ date_string | default('26 Jul 2024') }} {{ datetime | default('none') }}";
    // 2025-02-01.
    let template = || {
        let template = ChatTemplate::new(source, None, None).expect("a template");
        template.with_clock(|| UNIX_EPOCH + Duration::from_secs(1_738_368_000))
    };
    let conversation = Conversation::new(&[]);
    let text = |template: ChatTemplate| template.render(&conversation).expect("renders");
    assert_eq!(text(template()), "26 Jul 2024 none");
    assert_eq!(text(template().with_dates()), "01 Feb 2025 Feb 01 2025");
    let own = template().with_dates().with_variable("date_string", "today".into());
    assert_eq!(text(own), "today Feb 01 2025");
}

#[test]
fn tools_keep_the_order_of_their_keys() {
    // As `json.dumps` writes the same text after `json.loads`.
    let text = r#"{"type": "function", "function": {"name": "f", "description": "é <b>", "parameters": {"zeta": 1.0, "alpha": [1, null, true], "mid": {}}}}"#;
    let tools = [serde_json::from_str(text).expect("JSON")];
    let messages = [];
    let conversation = Conversation {
        tools: Some(&tools),
        ..Conversation::new(&messages)
    };
    assert_eq!(render("{{ tools[0] | tojson }}", &conversation).expect("renders"), text);
    let keys = "{% for key in tools[0].function %}{{ key }} {% endfor %}";
    assert_eq!(
        render(keys, &conversation).expect("renders"),
        "name description parameters "
    );
}

/// The test that Qwen3-Coder and Nemotron 3 ask: without tools it is false in Python, before the length is asked for.
#[test]
fn none_is_not_iterable_and_has_no_length() {
    let source = "{% if tools is iterable and tools | length > 0 %}tools{% else %}none{% endif %}";
    let messages = [];
    assert_eq!(render(source, &Conversation::new(&messages)).expect("renders"), "none");
    let error = render("{{ tools | length }}", &Conversation::new(&messages)).expect_err("none has no length");
    assert!(
        matches!(error, ChatError::Render(ref error) if error.line == 1),
        "{error}"
    );
}

#[test]
fn a_message_has_what_the_api_gives_it() {
    let source = "{% for m in messages %}{{ m | tojson }}\n{% endfor %}";
    let json = [
        json!({"role": "user", "content": [{"type": "text", "text": "hi"}]}),
        json!({"role": "assistant", "content": null, "reasoning": "hm", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"z": 1, "b": 2}}},
            {"function": {"name": "g", "arguments": "{\"x\": 1}"}},
        ]}),
        json!({"role": "tool", "content": "4", "tool_call_id": "a", "name": "f", "refusal": null, "channel": "x"}),
    ];
    let messages = json.map(|message| Message::from_json(&message).expect("a message"));
    let expected = concat!(
        r#"{"role": "user", "content": [{"type": "text", "text": "hi"}]}"#,
        "\n",
        r#"{"thinking": "hm", "role": "assistant", "reasoning_content": "hm", "tool_calls": [{"id": "a", "type": "function", "#,
        r#""function": {"name": "f", "arguments": {"z": 1, "b": 2}}}, {"type": "function", "function": {"name": "g", "#,
        r#""arguments": "{\"x\": 1}"}}]}"#,
        "\n",
        r#"{"role": "tool", "content": "4", "tool_call_id": "a", "name": "f", "channel": "x"}"#,
        "\n",
    );
    assert_eq!(
        render(source, &Conversation::new(&messages)).expect("renders"),
        expected
    );

    for (message, key) in [
        (json!(5), "message"),
        (json!({"content": "x"}), "role"),
        (json!({"role": "user", "content": 5}), "content"),
        (json!({"role": "user", "name": 5}), "name"),
        (json!({"role": "assistant", "tool_calls": {}}), "tool_calls"),
        (
            json!({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}),
            "tool_calls[].function.arguments",
        ),
        (
            json!({"role": "assistant", "tool_calls": [{"type": "custom"}]}),
            "tool_calls[].type",
        ),
        (json!({"role": "assistant", "thinking": ["x"]}), "thinking"),
    ] {
        let error = Message::from_json(&message).expect_err("no message");
        assert!(
            matches!(&error, ChatError::Message { key: found, .. } if found == key),
            "{message}: {error}"
        );
    }
    let error = Message::from_json(&json!({"role": "root", "content": "x"})).expect_err("no role");
    assert!(matches!(error, ChatError::UnknownRole { .. }), "{error}");
}

#[test]
fn variables_of_a_prompt_take_the_place_of_those_of_the_template() {
    let template = ChatTemplate::new(
        "{{ enable_thinking }} {{ a is defined }} {{ bos_token }}",
        Some("<s>"),
        None,
    )
    .expect("a template")
    .with_variable("enable_thinking", json!(true));
    let messages = [];
    let conversation = Conversation::new(&messages);
    assert_eq!(template.render(&conversation).expect("renders"), "True False <s>");
    let variables = [("enable_thinking", json!(false)), ("a", json!(null))];
    let conversation = Conversation {
        variables: &variables,
        ..conversation
    };
    assert_eq!(template.render(&conversation).expect("renders"), "False True <s>");
}

#[test]
fn a_final_message_is_continued_where_it_ends() {
    let messages = [
        Message::new(Role::User, "Count"),
        Message::new(Role::Assistant, "One, two, "),
    ];
    let conversation = Conversation {
        end: End::Content,
        ..Conversation::new(&messages)
    };
    let source = "{% for m in messages %}[{{ m.role }}]{{ m.content }}</s>{% endfor %}";
    assert_eq!(
        render(source, &conversation).expect("renders"),
        "[user]Count</s>[assistant]One, two, "
    );
    // As transformers does it where the template strips the content.
    let source = "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}</s>{% endfor %}";
    assert_eq!(
        render(source, &conversation).expect("renders"),
        "[user]Count</s>[assistant]One, two,"
    );
    let error = render("nothing", &conversation).expect_err("the content is not shown");
    assert!(matches!(error, ChatError::NoFinalMessage { .. }), "{error}");
    let silent = [call(json!({}))];
    let conversation = Conversation {
        messages: &silent,
        ..conversation
    };
    let error = render(source, &conversation).expect_err("no content");
    assert!(matches!(error, ChatError::NoFinalMessage { .. }), "{error}");
}

/// A control token of the tokenizer below.
const CONTROL: &str = "<eos>";

fn tokenizer() -> Tokenizer {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let gguf = Gguf::open(tiny).expect("a committed model");
    let tokenizer = Tokenizer::from_gguf(gguf.metadata()).expect("a tokenizer");
    let ids = |trusted| {
        let text = CONTROL.to_owned();
        tokenizer.encode_pieces(&[Piece { text, trusted }]).expect("a text")
    };
    assert_ne!(ids(true), ids(false), "{CONTROL} is a control token");
    tokenizer
}

/// Whatever others wrote, in whichever part of a message, is no control token; what the template wrote is.
#[test]
fn words_of_others_are_not_trusted_wherever_they_stand() {
    let tokenizer = tokenizer();
    let control = CONTROL.to_owned();
    let source = format!(
        "{control}{{% for m in messages %}}{{{{ m | tojson }}}}{{% endfor %}}{{{{ tools }}}}{{{{ documents | tojson(ensure_ascii=true) }}}}{{{{ own }}}}{control}"
    );
    let template = ChatTemplate::new(&source, None, None).expect("a template");
    let parts = [
        Message::new(Role::User, format!("a{control}b")),
        Message::new(
            Role::User,
            Content::Parts(vec![json!({"type": "text", "text": control})]),
        ),
        Message {
            reasoning: Some(control.clone()),
            ..Message::new(Role::Assistant, Content::Absent)
        },
        call(json!({ control.as_str(): 1, "x": [control] })),
        call(json!(control)),
        Message {
            name: Some(control.clone()),
            tool_call_id: Some(control.clone()),
            fields: vec![("extra".to_owned(), json!(control))],
            ..Message::new(Role::Tool, "x")
        },
    ];
    let tools = [json!({ control.as_str(): control })];
    let variables = [("own", json!(control))];
    for message in &parts {
        let conversation = Conversation {
            tools: Some(&tools),
            documents: Some(&tools),
            variables: &variables,
            ..Conversation::new(std::slice::from_ref(message))
        };
        let pieces = template.render_pieces(&conversation, &tokenizer).expect("renders");
        let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(text, template.render(&conversation).expect("renders"));
        let trusted: String = pieces
            .iter()
            .filter(|piece| piece.trusted)
            .map(|piece| piece.text.as_str())
            .collect();
        // The template's own two, and the one of the variable.
        assert_eq!(trusted.matches(&control).count(), 3, "{message:?}: {pieces:?}");
        let whole = |piece: &Piece| piece.trusted && piece.text.contains(&control);
        assert_eq!(
            pieces.iter().filter(|piece| whole(piece)).count(),
            2,
            "{message:?}: {pieces:?}"
        );
    }
}

/// The renderings that marking takes have one limit together.
#[test]
fn marking_does_not_multiply_the_limit() {
    let tokenizer = tokenizer();
    let messages = [Message::new(Role::User, CONTROL)];
    // About half of the limit each time.
    let turns = MAX_WORK / 2 / 20_000;
    let source = format!(
        "{{{{ messages[0].content }}}}{{% set x = 'a'*10000 %}}{{% for i in range({turns}) %}}{{% set y = x ~ '' %}}{{% endfor %}}"
    );
    let template = ChatTemplate::new(&source, None, None).expect("a template");
    let conversation = Conversation::new(&messages);
    template.render(&conversation).expect("renders once");
    let error = template
        .render_pieces(&conversation, &tokenizer)
        .expect_err("not several times");
    assert!(
        matches!(error, ChatError::TooMuchWork { limit: MAX_WORK, .. }),
        "{error}"
    );
}

#[test]
fn errors_say_where_and_what() {
    for (source, expected) in [
        ("a\n{{ 1 + }}", "line 2"),
        ("a\n\n{% if x %}", "endif"),
        ("{{ 'a'|nofilter }}", "nofilter"),
        ("{% include 'x' %}", "include"),
    ] {
        let error = ChatTemplate::new(source, None, None)
            .expect_err("no template")
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    let messages = [];
    let conversation = Conversation::new(&messages);
    let error = render("\n{{ 'a' + 1 }}", &conversation).expect_err("fails").to_string();
    assert!(error.contains("line 2") && error.contains("str and int"), "{error}");
    let error = render("{{ raise_exception('only one system message') }}", &conversation).expect_err("refuses");
    assert!(
        matches!(&error, ChatError::Refused { message } if message == "only one system message"),
        "{error}"
    );
}
