//! Hostile chat templates end with an error that has figures, and never take more than 256 MB: the allocator of this program counts.
//!
//! One test only: the counter counts all threads, also those of the test runner.
#![allow(clippy::print_stdout)] // what each template took, shown when the test fails or with --nocapture

use std::time::Instant;

use rocmforge_models::chat::{
    ChatError, ChatTemplate, Conversation, MAX_BYTES, MAX_TEMPLATE_BYTES, MAX_WORK, Message, Role,
};
use rocmforge_test_support::allocator::{self, Counting};
use serde_json::json;

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most bytes that parsing and rendering may take beside what the caller holds.
const MAX_PEAK: usize = 256_000_000;

/// How a template must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// `TooMuchWork`
    Work,
    /// `TooMuchMemory`
    Memory,
    /// `TooDeep`
    Depth,
    /// `Parse` or `Render`
    Wrong,
    /// `TemplateTooLong`
    Long,
    /// With a text: the template takes much, but not too much.
    Text,
}

/// Templates that are nested, by the text that is repeated: before, the repeated part, in the middle, the repeated part after, after.
const NESTED: [(&str, &str, &str, &str, &str); 24] = [
    ("{{ ", "not ", "1", "", " }}"),
    ("{{ ", "- ", "1", "", " }}"),
    ("{{ ", "+", "1", "", " }}"),
    ("{{ ", "(", "1", ")", " }}"),
    ("{{ ", "[", "1", "]", " }}"),
    ("{{ ", "(", "1", ",)", " }}"),
    ("{{ ", "{1:", "1", "}", " }}"),
    ("{{ ", "x[", "1", "]", " }}"),
    ("{{ ", "x(", "1", ")", " }}"),
    ("{{ ", "x(a=", "1", ")", " }}"),
    ("{{ ", "x(*", "1", ")", " }}"),
    ("{{ ", "x|default(", "1", ")", " }}"),
    ("{{ ", "x is eq(", "1", ")", " }}"),
    ("{{ ", "1 if 1 else ", "1", "", " }}"),
    ("{{ ", "x[:", "1", "]", " }}"),
    ("", "{% if 1 %}", "x", "{% endif %}", ""),
    ("", "{% for i in [1] %}", "x", "{% endfor %}", ""),
    ("", "{% set x %}", "x", "{% endset %}", ""),
    ("", "{% filter upper %}", "x", "{% endfilter %}", ""),
    ("", "{% with a = 1 %}", "x", "{% endwith %}", ""),
    ("", "{% macro m() %}", "x", "{% endmacro %}", ""),
    ("", "{% call m() %}", "x", "{% endcall %}", ""),
    ("", "{% generation %}", "x", "{% endgeneration %}", ""),
    ("{% set ", "(", "a", ")", " = 1 %}"),
];

/// Chains of one operator, which are long but not deep.
const CHAINS: [(&str, &str, &str); 12] = [
    ("{{ 1", "~1", " }}"),
    ("{{ 1", "+1", " }}"),
    ("{{ 1", "*1", " }}"),
    ("{{ 1", "**1", " }}"),
    ("{{ 1", " or 1", " }}"),
    ("{{ 1", " and 1", " }}"),
    ("{{ 1", " == 1", " }}"),
    ("{{ 'a'", "|trim", " }}"),
    ("{% if 0 %}", "{% elif 0 %}", "{% endif %}"),
    ("{{ 'a'", "'a'", " }}"),
    ("", "{{ 1 }}", ""),
    ("{{ [1", ",1", "]|length }}"),
];

/// Templates that are shorter than what they ask for.
const HUNGRY: &[(Ends, &str)] = &[
    // Texts that grow.
    (
        Ends::Work,
        "{% set ns = namespace(s='ab') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s|length }}",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(s='ab') %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}x",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(s='ab') %}{% for i in range(40) %}{% set ns.s = [ns.s, ns.s]|join(ns.s) %}{% endfor %}x",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(s='ab') %}{% for i in range(40) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}x",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(s='a'*1000) %}{% for i in range(6) %}{% set ns.s = ns.s|replace('a', 'a'*1000) %}{% endfor %}x",
    ),
    (Ends::Memory, "{% set x = 'a'*1000000 %}{{ x|replace('a', x)|length }}"),
    (Ends::Memory, "{% set x = 'a'*1000000 %}{{ x.replace('a', x)|length }}"),
    (Ends::Memory, "{% set x = 'a'*1000000 %}{{ x.replace('', x)|length }}"),
    (
        Ends::Memory,
        "{% set l = range(10000)|list %}{{ (l|join('a'*100000))|length }}",
    ),
    (
        Ends::Memory,
        "{% set l = ['a']*10000 %}{{ ('a'*100000).join(l)|length }}",
    ),
    (Ends::Memory, "{{ 'a' * 4000000000 }}"),
    (Ends::Memory, "{{ 4000000000000000000000000 * 'a' }}"),
    (Ends::Memory, "{{ 'a\nb'|indent(2000000000) }}"),
    (Ends::Memory, "{{ ('a\n'*10000)|indent(100000)|length }}"),
    (Ends::Memory, "{{ ('a\n'*10000)|indent('x'*100000)|length }}"),
    (Ends::Memory, "{{ 'a'|center(2000000000)|length }}"),
    (Ends::Memory, "{{ 'a'.center(2000000000)|length }}"),
    (Ends::Memory, "{{ 'a'.ljust(2000000000)|length }}"),
    (Ends::Memory, "{{ '%2000000000d'|format(1) }}"),
    (Ends::Memory, "{{ '%02000000000d'|format(1)|length }}"),
    (Ends::Memory, "{{ '%.2000000000d' % 1 }}"),
    (Ends::Memory, "{{ '%*d' % (2000000000, 1) }}"),
    (Ends::Memory, "{{ '%-2000000000s' % 'a' }}"),
    (Ends::Wrong, "{{ '%.2000000000f' % 1 }}"),
    (
        Ends::Wrong,
        "{{ '%99999999999999999999999999999999999999999999d' % 1 }}",
    ),
    (Ends::Memory, "{{ '{:2000000000}'.format(1) }}"),
    (Ends::Memory, "{{ '{:>{}}'.format('a', 2000000000) }}"),
    (Ends::Wrong, "{{ '{:.2000000000f}'.format(1) }}"),
    (Ends::Memory, "{{ ('{0}'*100000).format('a'*100000) }}"),
    (Ends::Memory, "{{ [1]|tojson(indent=2000000000) }}"),
    (Ends::Work, "{{ [[[1]]]|tojson(indent='a'*100000000) }}"),
    (
        Ends::Memory,
        "{{ (['a']*10000)|tojson(separators=('a'*100000, ':'))|length }}",
    ),
    (Ends::Work, "{{ ('<'*30000000)|e|length }}"),
    (Ends::Work, "{{ ('\\x01'*40000000)|tojson|length }}"),
    (Ends::Work, "{{ ['\\x01'*40000000]|string|length }}"),
    (Ends::Work, "{{ ('a'*20000000)|list|length }}"),
    (Ends::Work, "{{ ('a '*20000000).split()|length }}"),
    (Ends::Work, "{{ ('\n'*20000000).splitlines()|length }}"),
    (Ends::Work, "{% for c in 'a'*20000000 %}{% endfor %}"),
    (Ends::Work, "{% for i in range(100000) %}{{ 'a'*10000 }}{% endfor %}"),
    // Lists and dicts that grow.
    (
        Ends::Work,
        "{% set ns = namespace(s=[1, 2]) %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s|length }}",
    ),
    (Ends::Work, "{{ ([1]*4000000000)|length }}"),
    (Ends::Work, "{{ ((1,)*4000000000)|length }}"),
    (
        Ends::Work,
        "{% set l = [1]*1000 %}{{ (l*1000)|map('string')|list|length }}{{ ([l]*1000000)|length }}{{ ([l]*5000000)|length }}",
    ),
    (
        Ends::Work,
        "{% set l = range(100000) %}{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = ns.l + [l|list] %}{% endfor %}",
    ),
    (Ends::Work, "{{ [1]|batch(100000000, 1)|list }}"),
    (Ends::Work, "{{ [1]|slice(100000000)|list }}"),
    (
        Ends::Work,
        "{% set l = [[1]*1000]*100000 %}{{ l|sum(start=[])|length }}",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(d={}) %}{% for i in range(100000) %}{% set ns.d = dict(ns.d, **{i|string: 1}) %}{% endfor %}",
    ),
    // Values that hold each other many times.
    (
        Ends::Work,
        "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson|length }}",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|string|length }}",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l < ns.m }}",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = {'a': ns.l, 'b': ns.l} %}{% set ns.m = {'a': ns.m, 'b': ns.m} %}{% endfor %}{{ ns.l == ns.m }}",
    ),
    (
        Ends::Work,
        "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ [ns.l]|unique|list if 0 else ns.l in [ns.m] }}",
    ),
    // Values that are nested.
    (
        Ends::Depth,
        "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}",
    ),
    (
        Ends::Depth,
        "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = (ns.s,) %}{% endfor %}x",
    ),
    (
        Ends::Depth,
        "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = {'a': ns.s} %}{% endfor %}x",
    ),
    (
        Ends::Depth,
        "{% set ns = namespace(s={}) %}{% for i in range(100000) %}{% set ns.s = {'a': ns.s}.items() %}{% endfor %}x",
    ),
    (
        Ends::Depth,
        "{% set ns = namespace(s={}) %}{% for i in range(100000) %}{% set ns.s = [{'a': ns.s}.get] %}{% endfor %}x",
    ),
    (
        Ends::Depth,
        "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s]|select('defined') %}{% endfor %}x",
    ),
    (
        Ends::Depth,
        "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% for j in [ns.s] %}{% set ns.s = loop %}{% endfor %}{% endfor %}x",
    ),
    (
        Ends::Depth,
        "{% set ns = namespace(s=[], t=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% set ns.t = [ns.t] %}{% endfor %}{{ ns.s == ns.t }}",
    ),
    (Ends::Wrong, "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}"),
    (Ends::Wrong, "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a }}"),
    (
        Ends::Wrong,
        "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a|tojson }}",
    ),
    (
        Ends::Text,
        "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a == ns.a }}{{ ns.a == [ns] }}",
    ),
    // Calls without end.
    (Ends::Depth, "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
    (
        Ends::Depth,
        "{% macro m(x) %}{% if x %}{{ m(m) }}{% endif %}{% endmacro %}{{ m(1) }}",
    ),
    (
        Ends::Depth,
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
    ),
    (
        Ends::Depth,
        "{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}",
    ),
    (Ends::Depth, "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
    (Ends::Depth, "{% macro m(x=m()) %}{% endmacro %}{{ m() }}"),
    (
        Ends::Work,
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    ),
    // Loops.
    (
        Ends::Work,
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% for a in range(100000) if a < 0 %}{% endfor %}{% for a in range(100000) %}{% for b in range(100) if b < 0 %}{% endfor %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% for i in range(100000) %}{% if 'b' in x %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% set y = 'a'*10000000 %}{% for i in range(100000) %}{% if x == y %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% set y = 'a'*10000000 %}{% for i in range(100000) %}{% if x < y %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% for i in range(100000) %}{% if x|length %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% for i in range(100000) %}{% if x[9999999] %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% for i in range(100000) %}{% if x[-1:] %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% for i in range(100000) %}{% if x.find('b') %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% for i in range(100000) %}{% if x.count('b') %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = ' '*10000000 %}{% for i in range(100000) %}{% if x.strip() %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% for i in range(100000) %}{% if x.isalpha() %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% for i in range(100000) %}{% if x is lower %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% for i in range(100000) %}{% if x|int %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% set d = {x: 1} %}{% for i in range(100000) %}{% if d[x] %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% set d = {x: 1} %}{% for i in range(100000) %}{% if x in d %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'a'*10000000 %}{% set d = {x: 1} %}{% for i in range(100000) %}{% if d.get(x) %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = ('a'*1000000,) %}{% set d = {x: 1} %}{% for i in range(100000) %}{% if d.get(x) %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set l = range(10000)|list %}{% for i in range(100000) %}{% set q = l|sort %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set l = range(10000)|list %}{% for i in range(100000) %}{% set q = l|max %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set l = range(10000)|list %}{% for i in range(100000) %}{% set q = l|sum %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set l = range(10000)|list %}{% for i in range(100000) %}{% set q = l[::-1] %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set l = range(10000)|list %}{% for i in range(100000) %}{% set q = l|select('eq', -1)|list %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% for i in range(100000) %}{% set q = range(100000)|list %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% for i in range(100000) %}{% if -1 in range(100000) %}{% endif %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% for i in range(100000) %}{% for j in range(100000) %}{% set x = '' %}{% endfor %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = ('a'*100000)|tojson %}{% for i in range(100000) %}{% set y = x|tojson %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'ab'*1000000 %}{% for i in range(100000) %}{% set y = x.strip('a' ~ 'b'*200) %}{% endfor %}",
    ),
    (
        Ends::Work,
        "{% set x = 'nan'|float %}{% set l = [x, 1.0, x, 0.0] * 1000 %}{% for i in range(100000) %}{% set y = l|sort %}{% endfor %}",
    ),
    (Ends::Wrong, "{{ 2 ** 100000000 }}"),
    (Ends::Wrong, "{{ 10 ** 30 * 10 ** 30 }}"),
    (Ends::Wrong, "{{ range(10 ** 30) }}"),
    (Ends::Wrong, "{{ ('9'*1000000)|int(default=raise_exception) + 'a' }}"),
    (Ends::Wrong, "{{ lipsum(n=1000000) }}"),
    (Ends::Wrong, "{% include 'x' %}"),
    (Ends::Wrong, "{{ ''.__class__.__mro__ }}"),
];

/// Parses and renders; the bytes that this took at its peak beside those in use before.
fn run(source: &str) -> (Result<String, ChatError>, usize) {
    let messages = [Message::new(Role::User, "hi")];
    let (peak, result) = allocator::peak(|| {
        ChatTemplate::new(source, None, None).and_then(|template| template.render(&Conversation::new(&messages)))
    });
    (result, peak)
}

/// Runs one template. An end that is not the expected one is added to `failures`.
fn check(ends: Ends, source: &str, failures: &mut Vec<String>) {
    let started = Instant::now();
    let (result, peak) = run(source);
    let elapsed = started.elapsed();
    let shown: String = source.chars().take(90).collect();
    let found = match &result {
        Ok(_) => Ends::Text,
        Err(ChatError::TooMuchWork { limit, .. }) if *limit == MAX_WORK => Ends::Work,
        Err(ChatError::TooMuchMemory { bytes, limit, .. }) if *limit == MAX_BYTES && bytes > limit => Ends::Memory,
        Err(ChatError::TooDeep { limit, .. }) if *limit > 0 => Ends::Depth,
        Err(ChatError::Parse(error) | ChatError::Render(error)) if error.line > 0 => Ends::Wrong,
        Err(ChatError::TemplateTooLong { bytes, limit }) if *bytes == source.len() && *limit == MAX_TEMPLATE_BYTES => {
            Ends::Long
        }
        Err(error) => panic!("{shown}: {error}"),
    };
    println!("{elapsed:>12.3?} {:>7.1} MB {found:?} {shown:?}", peak as f64 / 1e6);
    if found != ends {
        failures.push(format!("{shown}: {:.300}", format!("{result:?}")));
    }
    if peak >= MAX_PEAK {
        failures.push(format!("{shown}: {peak} bytes"));
    }
}

#[test]
fn hostile_templates_end_within_their_limits() {
    let failures = &mut Vec::new();
    for (ends, source) in HUNGRY {
        check(*ends, source, failures);
    }
    for (before, open, middle, close, after) in NESTED {
        for times in [2_000, MAX_TEMPLATE_BYTES / (open.len() + close.len()) - 40] {
            let source = [before, &open.repeat(times), middle, &close.repeat(times), after].concat();
            assert!(source.len() <= MAX_TEMPLATE_BYTES);
            check(Ends::Depth, &source, failures);
        }
        // What people write is not refused.
        let source = [before, &open.repeat(20), middle, &close.repeat(20), after].concat();
        let error = run(&source).0.err();
        if matches!(error, Some(ChatError::TooDeep { .. })) {
            failures.push(format!("{source}: {error:?}"));
        }
    }
    for (before, part, after) in CHAINS {
        let times = (MAX_TEMPLATE_BYTES - before.len() - after.len()) / part.len();
        check(Ends::Text, &[before, &part.repeat(times), after].concat(), failures);
    }
    // Attributes that are not there, one of another.
    check(Ends::Wrong, &["{{ a", &".b".repeat(100_000), " }}"].concat(), failures);
    check(Ends::Wrong, &["{{ a", &"[0]".repeat(80_000), " }}"].concat(), failures);
    check(Ends::Wrong, &["{{ a", &"()".repeat(100_000), " }}"].concat(), failures);
    check(
        Ends::Wrong,
        &"(".repeat(MAX_TEMPLATE_BYTES).replacen("((", "{{", 1),
        failures,
    );
    check(Ends::Long, &"x".repeat(MAX_TEMPLATE_BYTES + 1), failures);
    check(Ends::Long, &["{{ ", &"not ".repeat(100_000), "1 }}"].concat(), failures);
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );

    // What is given is bounded too.
    let mut deep = json!(1);
    for _ in 0..500 {
        deep = json!([deep]);
    }
    let template = ChatTemplate::new("x", None, None).expect("a template");
    let messages = [Message::new(Role::User, "hi")];
    let tools = [deep];
    let conversation = Conversation {
        tools: Some(&tools),
        ..Conversation::new(&messages)
    };
    let error = template.render(&conversation).expect_err("it is too deep");
    assert!(matches!(error, ChatError::TooDeep { .. }), "{error}");
    let long = [Message::new(Role::User, "x".repeat(MAX_BYTES))];
    let error = template.render(&Conversation::new(&long)).expect_err("it is too long");
    assert!(matches!(error, ChatError::TooMuchMemory { .. }), "{error}");
}
