//! The C probe: made from our lists, run, and its answers compared with ours.

use super::header::Header;
use super::report::{Row, Verdict};
use super::{BindingsError, Subject, known};
use std::fmt::Write as _;

/// The function types of callbacks.
const CALLBACKS: &[(&str, &str)] = &[
    ("hipHostFn_t", "void (*)(void*)"),
    ("hipStreamCallback_t", "void (*)(hipStream_t, hipError_t, void*)"),
];

/// One question to the probe, with the answer we expect.
struct Question {
    kind: &'static str,
    name: String,
    /// What the headers must have for the question to make sense.
    needs: String,
    /// A C expression.
    expression: String,
    ours: u64,
    /// What to show instead of the numbers if they differ.
    texts: Option<(String, String)>,
}

/// Compares everything in `subject` with the headers, one row each.
pub(super) fn compare(header: &Header, subject: &Subject) -> Result<Vec<Row>, BindingsError> {
    let mut rows = Vec::new();
    let mut asked = Vec::new();
    for question in questions(header, subject, &mut rows) {
        if header.has(&question.needs) {
            asked.push(question);
            continue;
        }
        let verdict = match known::absent(&question.needs, header.version) {
            Some(reason) => Verdict::Absent(reason),
            None => Verdict::Differs {
                ours: question.ours.to_string(),
                theirs: "not in this header".to_owned(),
            },
        };
        rows.push(Row::new(question.kind, question.name, verdict));
    }
    let mut program = String::from("#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n");
    for question in &asked {
        writeln!(
            program,
            "    printf(\"%llu\\n\", (unsigned long long)({}));",
            question.expression
        )
        .expect("a String");
    }
    program.push_str("    return 0;\n}\n");
    let output = header.run_program(&program)?;
    let answer = |line: &str| line.parse().map_err(|_| BindingsError::Answer(line.to_owned()));
    let answers: Vec<u64> = output.lines().map(answer).collect::<Result<_, _>>()?;
    if answers.len() != asked.len() {
        return Err(BindingsError::Answer(format!(
            "{} lines for {} questions",
            answers.len(),
            asked.len()
        )));
    }
    for (question, theirs) in asked.into_iter().zip(answers) {
        let verdict = match (
            question.ours == theirs,
            known::different(&question.name, header.version),
        ) {
            (true, None) => Verdict::Same,
            (false, Some(reason)) => Verdict::Known(format!("ours {}, theirs {theirs}: {reason}", question.ours)),
            (true, Some(_)) => Verdict::Stale,
            (false, None) => {
                let (ours, theirs) = question
                    .texts
                    .unwrap_or((question.ours.to_string(), theirs.to_string()));
                Verdict::Differs { ours, theirs }
            }
        };
        rows.push(Row::new(question.kind, question.name, verdict));
    }
    Ok(rows)
}

fn questions(header: &Header, subject: &Subject, rows: &mut Vec<Row>) -> Vec<Question> {
    let mut questions = Vec::new();
    for function in &subject.functions {
        if let Some(reason) = known::incomparable(function.name, header.version) {
            let verdict = Verdict::Known(reason.to_owned());
            rows.push(Row::new("signature", function.name, verdict));
            continue;
        }
        let args: Vec<String> = function.args.iter().map(|(_, ty)| c_type(ty, header.version)).collect();
        let list = if args.is_empty() {
            "void".to_owned()
        } else {
            args.join(", ")
        };
        let theirs = header
            .declaration(function.name)
            .unwrap_or_else(|| "another type".to_owned());
        questions.push(Question {
            kind: "signature",
            name: function.name.to_owned(),
            needs: function.name.to_owned(),
            expression: same_type(
                &format!("__typeof__(&{})", function.name),
                &format!("hipError_t (*)({list})"),
            ),
            ours: 1,
            texts: Some((format!("hipError_t {}({list})", function.name), theirs)),
        });
    }
    for (name, ty) in CALLBACKS {
        questions.push(Question {
            kind: "signature",
            name: (*name).to_owned(),
            needs: (*name).to_owned(),
            expression: same_type(name, ty),
            ours: 1,
            texts: Some(((*ty).to_owned(), "another type".to_owned())),
        });
    }
    for constant in &subject.constants {
        let (name, group) = (constant.name, constant.group);
        // A C enum may be signed; what is passed to a call is its 32 bits. The marks of the `extra` list are pointers.
        let cast = if group == "HIP_LAUNCH_PARAM" {
            "unsigned long long"
        } else {
            "unsigned"
        };
        questions.push(Question {
            kind: "constant",
            name: name.to_owned(),
            needs: name.to_owned(),
            expression: format!("({cast})({name})"),
            ours: constant.value,
            texts: None,
        });
    }
    let size = |name: String, c_name: &str, ours: usize| Question {
        kind: "size",
        name,
        needs: c_name.to_owned(),
        expression: format!("sizeof({})", c_type(c_name, header.version)),
        ours: ours as u64,
        texts: None,
    };
    let types = subject.types.iter();
    questions.extend(types.map(|(name, bytes)| size((*name).to_owned(), name, *bytes)));
    for layout in &subject.layouts {
        let (first, last) = layout.majors;
        if !(first..=last).contains(&header.version.0) {
            let versions = if first == last {
                format!("HIP {first}")
            } else {
                format!("HIP {first} and later")
            };
            let verdict = Verdict::Absent(format!("not in this header: it is the {} of {versions}", layout.c_name));
            rows.push(Row::new("size", layout.name, verdict));
            continue;
        }
        questions.push(size(layout.name.to_owned(), layout.c_name, layout.size));
        for (field, offset, bytes) in layout.fields {
            let theirs = known::field(layout.name, field, header.version);
            let question = |what: &str, expression: String, ours: usize| Question {
                kind: "offset",
                name: format!("{}.{field}{what}", layout.name),
                needs: theirs.to_owned(),
                expression,
                ours: ours as u64,
                texts: None,
            };
            let c_name = c_type(layout.c_name, header.version);
            questions.push(question("", format!("offsetof({c_name}, {theirs})"), *offset));
            questions.push(question(
                " (bytes)",
                format!("sizeof((({c_name}*)0)->{theirs})"),
                *bytes,
            ));
        }
    }
    questions
}

fn same_type(left: &str, right: &str) -> String {
    format!("__builtin_types_compatible_p({left}, {right})")
}

/// The C type for a Rust type of our function list.
pub(super) fn c_type(rust: &str, version: (u32, u32)) -> String {
    let rust = rust.trim();
    // How the compiler spaces the text of a type is its own business: `*mut T`, `* mut T`.
    if let Some(pointer) = rust.strip_prefix('*').map(str::trim_start) {
        let pointee = |keyword| pointer.strip_prefix(keyword).map(|pointee| c_type(pointee, version));
        if let Some(pointee) = pointee("mut ") {
            return format!("{pointee}*");
        }
        if let Some(pointee) = pointee("const ") {
            // `const` binds to what is pointed at.
            return format!("{pointee} const*");
        }
    }
    // A function pointer that may be null: in C every one may.
    if let Some(inner) = rust
        .strip_prefix("Option")
        .map(|rest| rest.trim_matches([' ', '<', '>']))
    {
        return c_type(inner, version);
    }
    match rust {
        "c_int" => "int",
        "c_uint" => "unsigned int",
        "c_char" => "char",
        "c_uchar" => "unsigned char",
        "c_ushort" => "unsigned short",
        "c_ulonglong" => "unsigned long long",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        // What C has no typedef of.
        "hipLimit_t" | "hipTextureAddressMode" | "hipTextureFilterMode" | "hipTextureReadMode" => {
            return format!("enum {rust}");
        }
        "hipResourceViewDesc" => "struct hipResourceViewDesc",
        "c_void" => "void",
        "usize" => "size_t",
        "f32" => "float",
        // HIP 6.2 gave these two their names of today.
        "hipLaunchAttributeID" if version < (6, 2) => "hipKernelNodeAttrID",
        "hipLaunchAttributeValue" if version < (6, 2) => "hipKernelNodeAttrValue",
        // HIP 5 has one struct, under the plain name.
        "hipDeviceProp_tR0000" if version.0 <= 5 => "hipDeviceProp_t",
        other => other,
    }
    .to_owned()
}
