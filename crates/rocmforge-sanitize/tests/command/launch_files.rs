//! Launch files: what buffers can hold, typed arguments, several objects, steps, and what is said of mistakes in them.

use crate::common::{Folder, call, refused, run};
use rocmforge_sanitize::Exit;

/// The floats of a file that a run has written.
fn floats(folder: &Folder, name: &str) -> Vec<f32> {
    let bytes = std::fs::read(folder.path(name)).unwrap();
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}

/// Runs `copy` over a buffer `x` of 8 elements that is declared so, and gives what it has copied; or what was found.
fn copied(x: &str) -> Result<Vec<f32>, String> {
    let folder = Folder::new();
    let text = format!(
        "object = \"basic.co\"\nseeds = 1\n[buffers]\nx = {x}\ny = \"f32[8] -> y.bin\"\n\
         [[launch]]\nkernel = \"copy\"\nblock = 32\nargs = [\"x\", \"y\", 8]"
    );
    let ran = folder.run(&text, &[]);
    match ran.exit {
        Exit::Program(_) => unreachable!("a launch file is no program"),
        Exit::Clean => Ok(floats(&folder, "y.bin")),
        Exit::Found => Err(ran.out),
        Exit::CannotRun => panic!("{text}\n{}", ran.err),
    }
}

#[test]
fn buffers_hold_values_and_ranges() {
    for (x, holds) in [
        (
            "{ dtype = \"f32\", values = [1, 2.5, -3, 4, 5, 6, 7, 8] }",
            [1.0, 2.5, -3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        ),
        (
            "{ dtype = \"f32\", shape = [2, 4], values = [[1, 2, 3, 4], [5, 6, 7, 8]] }",
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        ),
        (
            "{ dtype = \"f32\", range = \"0..8\" }",
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        ),
        (
            "{ dtype = \"f32\", range = \"-3..5\" }",
            [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0],
        ),
        (
            "{ dtype = \"f32\", shape = 8, range = { start = 1.0, step = 0.5 } }",
            [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5],
        ),
        (
            "{ dtype = \"f32\", range = { start = 10, end = -6, step = -2 } }",
            [10.0, 8.0, 6.0, 4.0, 2.0, 0.0, -2.0, -4.0],
        ),
        (
            "{ dtype = \"f32\", range = { end = 4.0, step = 0.5 } }",
            [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5],
        ),
    ] {
        assert_eq!(copied(x).as_deref(), Ok(&holds[..]), "{x}");
    }
}

#[test]
fn what_a_buffer_is_not_filled_with_counts_as_never_written() {
    for (x, elements, first) in [
        ("{ dtype = \"f32\", shape = 8, values = [1, 2, 3] }", 5, 3),
        (
            "{ dtype = \"f32\", shape = 8, fill = \"iota\", written = \"0..6\" }",
            2,
            6,
        ),
        (
            "{ dtype = \"f32\", shape = 8, value = 1.0, written = [\"0..2\", \"4..8\"] }",
            2,
            2,
        ),
        ("{ dtype = \"f32\", range = \"0..8\", written = \"2..8\" }", 2, 0),
    ] {
        let found = copied(x).unwrap_err();
        assert!(found.contains("memory that was never written"), "{x}: {found}");
        assert!(
            found.contains(&format!("lane {first}, {elements} lanes in all")),
            "{x}: {found}"
        );
    }
    let all = copied("{ dtype = \"f32\", shape = 8, fill = \"iota\", written = [\"0..4\", \"4..8\"] }");
    assert_eq!(all.as_deref(), Ok(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0][..]));
}

#[test]
fn buffers_that_cannot_be_are_refused() {
    let cases: &[(&str, &[&str])] = &[
        ("dtype = \"u8\", values = [1, 300]", &["launch.toml:3", "300", "no u8"]),
        ("dtype = \"i32\", values = [1.5]", &["1.5", "no i32"]),
        ("dtype = \"u8\", values = [\"a\"]", &["a number"]),
        (
            "dtype = \"u8\", shape = 2, values = [1, 2, 3]",
            &["has 2 elements, and 3 are given"],
        ),
        ("dtype = \"u8\", values = []", &["no elements"]),
        ("dtype = \"u8\", range = \"0..300\"", &["299", "no u8"]),
        ("dtype = \"u8\", range = \"-1..3\"", &["-1", "no u8"]),
        (
            "dtype = \"u8\", shape = 5, range = \"0..4\"",
            &["has 5 elements, and 4 are given"],
        ),
        ("dtype = \"u8\", range = \"4..4\"", &["its end beyond its start"]),
        ("dtype = \"u8\", range = \"4\"", &["0..64"]),
        (
            "dtype = \"u8\", range = { start = 1, end = 9, step = -1 }",
            &["no elements"],
        ),
        (
            "dtype = \"u8\", range = { start = 1, end = 9, step = 0 }",
            &["no elements"],
        ),
        ("dtype = \"f32\", range = { start = nan, end = 9 }", &["finite"]),
        ("dtype = \"f32\", range = { end = 1e30 }", &["more than"]),
        ("dtype = \"f32\", range = \"0..9223372036854775807\"", &["more than"]),
        ("dtype = \"u8\", range = { from = 1 }", &["unknown key `from`"]),
        ("dtype = \"u8\", range = { start = 1 }", &["needs `shape`"]),
        ("dtype = \"u8\", shape = 4, written = \"0..2\"", &["not filled"]),
        (
            "dtype = \"u8\", shape = 4, value = 1, written = \"0..5\"",
            &["the buffer has 4"],
        ),
        ("dtype = \"u8\", shape = 4, value = 1, written = \"3..2\"", &["0..8"]),
        ("dtype = \"u8\", shape = 4, value = 1, written = []", &["is empty"]),
        (
            "dtype = \"u8\", shape = 4, value = 1, written = [\"0..2\", \"1..4\"]",
            &["has 1..4 after 0..2"],
        ),
        (
            "dtype = \"u8\", shape = 4, value = 1, fill = \"ones\"",
            &["`fill` and `value`"],
        ),
        (
            "dtype = \"u8\", shap = 4, value = 1",
            &["unknown key `shap`", "did you mean `shape`"],
        ),
        (
            "dtyp = \"u8\", shape = 4",
            &["unknown key `dtyp`", "did you mean `dtype`"],
        ),
        (
            "dtype = \"u8\", shape = 4, vale = 1",
            &["unknown key `vale`", "did you mean `value`"],
        ),
        ("pointers = [\"z\"]", &["no buffer `z`", "x"]),
        (
            "pointers = [{ buffer = \"xx\" }]",
            &["no buffer `xx`", "did you mean `x`"],
        ),
        (
            "pointers = [{ bufer = \"x\" }]",
            &["unknown key `bufer`", "did you mean `buffer`"],
        ),
        (
            "pointers = [{ buffer = \"x\", offset = 9 }]",
            &["starts 9 B into a buffer of 8 B"],
        ),
        ("pointers = [1]", &["or 0"]),
        ("pointers = []", &["no elements"]),
        ("pointers = [0], shape = 2", &["does not have 1 elements"]),
        ("pointers = [0], dtype = \"u8\"", &["unknown key `dtype`"]),
    ];
    for (x, words) in cases {
        let text = format!(
            "object = \"basic.co\"\n[buffers]\nx = {{ {x} }}\n[[launch]]\nkernel = \"at_most_64\"\nblock = 1\nargs = [\"x\"]"
        );
        refused(&text, &[], words);
    }
}

#[test]
fn a_pointer_buffer_holds_addresses_of_other_buffers() {
    let folder = Folder::new();
    let text = r#"
        object = "params.co"
        seeds = 2
        [buffers]
        rows = { pointers = ["a", { buffer = "b", offset = 8 }, 0, "b"] }
        a = "f32[1] 5"
        b = "f32[4] iota"
        y = "f32[4] -> y.bin"
        [[launch]]
        kernel = "_Z5headsPKPKfPf"
        block = 4
        args = ["rows", "y"]
    "#;
    let ran = folder.run(text, &[]);
    assert_eq!(ran.exit, Exit::Clean, "{}{}", ran.out, ran.err);
    assert_eq!(floats(&folder, "y.bin"), [5.0, 2.0, -1.0, 0.0]);
    // One past the end is an address, and no element.
    let ran = folder.run(&text.replace("offset = 8", "offset = 16"), &[]);
    assert_eq!(ran.exit, Exit::Found, "{}", ran.err);
    assert!(
        ran.out.contains("0 B past the end") && ran.out.contains("\"b\""),
        "{}",
        ran.out
    );
}

#[test]
fn several_objects_are_launched_from() {
    let folder = Folder::new();
    let text = r#"
        seeds = 1
        [objects]
        basic = "basic.co"
        params = "params.co"
        [buffers]
        x = "f32[8]"
        y = "f32[8] -> y.bin"
        [[launch]]
        kernel = "fill"
        block = 32
        args = ["x", 2.0, 8]
        [[launch]]
        kernel = "_Z5scalePKfPffih"
        object = "params"
        block = 8
        args = ["x", "y", 1.5, -1, 3]
    "#;
    let ran = folder.run(text, &["--format", "json"]);
    let page = ran.json();
    assert_eq!(ran.exit, Exit::Clean, "{page:#}");
    assert_eq!(floats(&folder, "y.bin"), [8.0; 8]);
    assert_eq!(page["objects"].as_array().unwrap().len(), 2);
    assert!(page["object"].as_str().unwrap().ends_with("basic.co"));
    for (from, to, words) in [
        (
            "object = \"params\"",
            "object = \"param\"",
            &["names \"param\"", "did you mean \"params\""][..],
        ),
        (
            "object = \"params\"",
            "object = \"basic\"",
            &["basic.co has no kernel `_Z5scale"],
        ),
        (
            "kernel = \"fill\"",
            "kernel = \"fil\"",
            &["no kernel `fil`", "did you mean `fill`"],
        ),
        (
            "params = \"params.co\"",
            "params = \"basic.co\"",
            &["`fill` is in several objects"],
        ),
        (
            "[objects]",
            "object = \"basic.co\"\n[objects]",
            &["stands beside `object`"],
        ),
        (
            "basic = \"basic.co\"\n        params = \"params.co\"",
            "",
            &["is empty"],
        ),
        ("\"params.co\"", "\"absent.co\"", &["absent.co"]),
    ] {
        refused(&text.replace(from, to), &[], words);
    }
    let twice = text.replace("params = \"params.co\"", "params = \"params.co\"\nagain = \"basic.co\"");
    refused(&twice, &[], &["`fill` is in several objects", "basic, again"]);
}

#[test]
fn objects_for_several_processors_agree_on_one() {
    let folder = Folder::new();
    let pack = rocmforge_kernels::Pack::embedded("gfx1201").unwrap();
    std::fs::write(folder.path("rdna4.co"), pack.object("elementwise").unwrap().unwrap()).unwrap();
    let text = "[objects]\na = \"basic.co\"\nb = \"rdna4.co\"\n[[launch]]\nkernel = \"at_most_64\"\nblock = 1\nargs = [\"f32[1]\"]";
    let ran = folder.run(text, &[]);
    assert_eq!(ran.exit, Exit::CannotRun);
    assert!(
        ran.err.contains("rdna4.co") && ran.err.contains("gfx1100"),
        "{}",
        ran.err
    );
}

/// The arguments of `scale(const float *x, float *y, float by, int add, unsigned char times)`.
fn scale(args: &str) -> String {
    format!(
        "object = \"params.co\"\nseeds = 1\n[[launch]]\nkernel = \"_Z5scalePKfPffih\"\nblock = 8\n\
         args = [\"f32[8] iota\", \"f32[8]\", {args}]"
    )
}

#[test]
fn a_number_must_be_of_the_arguments_type() {
    for good in [
        "2.0, 1, 255",
        "2e0, -2147483648, 0",
        "{ f32 = 2.0 }, { i32 = 1 }, { u8 = 1 }",
    ] {
        let ran = run(&scale(good), &[]);
        assert_eq!(ran.exit, Exit::Clean, "{good}: {}{}", ran.out, ran.err);
    }
    for (bad, words) in [
        ("2, 1, 1", &["argument 2", "is 2, and the type is f32: write 2.0"][..]),
        ("2.0, 1.0, 1", &["argument 3", "the type is i32, an integer"]),
        (
            "2.0, 2147483648, 1",
            &["argument 3", "2147483648, which is no i32 (-2147483648 to 2147483647)"],
        ),
        ("2.0, 1, 256", &["argument 4", "256, which is no u8 (0 to 255)"]),
        ("2.0, 1, -1", &["argument 4", "-1, which is no u8"]),
        ("{ f32 = 2 }, 1, 1", &["write 2.0"]),
        ("{ u8 = 300 }, 1, 1", &["300, which is no u8 (0 to 255)"]),
        ("{ i32 = 1.5 }, 1, 1", &["an integer"]),
        ("{ f33 = 1.5 }, 1, 1", &["unknown key `f33`", "did you mean `f32`"]),
        (
            "{ bufer = \"x\" }, 1, 1",
            &["launch.toml:6", "unknown key `bufer`", "did you mean `buffer`?"],
        ),
        ("2.0, 1, 99999999999", &["argument 4"]),
    ] {
        refused(&scale(bad), &[], words);
    }
    // Without types an integer of either sign fits, and one that has too many bits does not.
    let plain = |n: &str| {
        format!(
            "object = \"basic.co\"\nseeds = 1\n[[launch]]\nkernel = \"fill\"\nblock = 32\nargs = [\"f32[32]\", 1.0, {n}]"
        )
    };
    assert_eq!(run(&plain("-1"), &["--tool", "racecheck"]).exit, Exit::Clean);
    refused(&plain("4294967296"), &[], &["argument 2", "4294967296"]);
}

#[test]
fn a_misspelt_key_is_refused_with_the_one_that_is_meant() {
    for (text, words) in [
        (
            "objct = \"basic.co\"",
            &["launch.toml:1: unknown key `objct` of a launch file: did you mean `object`?"][..],
        ),
        (
            "object = \"basic.co\"\n[[lauch]]",
            &["launch.toml:2: unknown key `lauch`", "`launch`"],
        ),
        (
            "object = \"basic.co\"\n[[launch]]\nkernal = \"fill\"",
            &["launch.toml:3: unknown key `kernal`", "`kernel`"],
        ),
        (
            "object = \"basic.co\"\n[[launch]]\nkernel = \"at_most_64\"\nblocks = 1",
            &["launch.toml:4: unknown key `blocks` of a launch: did you mean `block`?"],
        ),
        (
            "object = \"basic.co\"\n[buffers]\ninput = \"f32[4]\"\n[[launch]]\nkernel = \"at_most_64\"\nblock = 1\nargs = [\"inptu\"]",
            &["no buffer `inptu`: did you mean `input`?"],
        ),
        (
            "object = \"basic.co\"\nsedes = 3\n[[launch]]\nkernel = \"at_most_64\"\nblock = 1\nargs = [\"f32[4]\"]",
            &["unknown key `sedes`", "did you mean `seeds`?"],
        ),
        (
            "object = \"basic.co\"\nnonsense = 3\n[[launch]]\nkernel = \"at_most_64\"\nblock = 1\nargs = [\"f32[4]\"]",
            &["unknown key `nonsense` of a launch file; there are: object"],
        ),
    ] {
        refused(text, &[], words);
    }
}

#[test]
fn the_manuals_files_are_what_the_program_reads() {
    let manual = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sanitize.md");
    let Ok(manual) = std::fs::read_to_string(manual) else {
        return; // a packaged crate is without the manual
    };
    let path = std::path::Path::new("manual.toml");
    let mut read = 0;
    for part in manual.split("```toml\n").skip(1) {
        let (text, _) = part.split_once("```").unwrap();
        let launch = "[[launch]]\nkernel = \"k\"\nblock = 1\n";
        let (what, error) = if text.contains("[[suppress]]") {
            let read = rocmforge_sanitize::Suppressions::parse(path, text);
            (text.to_owned(), read.err())
        } else {
            let text = match (text.contains("object"), text.contains("[[")) {
                (false, _) => format!("object = \"x.co\"\n{text}{launch}"),
                (true, false) => format!("{text}{launch}"),
                (true, true) => text.to_owned(),
            };
            (text.clone(), rocmforge_sanitize::LaunchFile::parse(path, &text).err())
        };
        assert!(
            error.is_none(),
            "{}\n{what}",
            error.map(|e| e.to_string()).unwrap_or_default()
        );
        read += 1;
    }
    assert!(read >= 4, "{read}");
}

#[test]
fn a_template_knows_the_types_and_runs() {
    let object = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects/params.co");
    let object = rocmforge_sanitize::ObjectFile::read(&object, None).unwrap();
    let page = rocmforge_sanitize::describe(&object);
    assert!(
        page.contains("_Z5scalePKfPffih(pointer, pointer, f32, i32, u8)"),
        "{page}"
    );
    let template = rocmforge_sanitize::template(&object, std::path::Path::new("params.co")).unwrap();
    assert!(template.contains("1.0, # f32"), "{template}");
    // Only `scale`: an iota is no table of pointers.
    let (head, rest) = template.split_once("[[launch]]").unwrap();
    let launches = rest.split("[[launch]]").filter(|launch| launch.contains("scale"));
    let text: String = launches.map(|launch| format!("{head}[[launch]]{launch}")).collect();
    let ran = run(&text.replace("block = [64, 1, 1]", "block = 32"), &[]);
    assert_eq!(ran.exit, Exit::Clean, "{text}\n{}{}", ran.out, ran.err);
}

/// Each says what it is, and what the user probably wants.
#[test]
fn what_is_not_a_launch_file_is_named() {
    let folder = Folder::new();
    let object = folder.path("reverse.co");
    let ran = call(&[&object.to_string_lossy()]);
    assert_eq!(ran.exit, Exit::CannotRun);
    let said = [
        "is a code object, not a launch file",
        "--template",
        "--kernels",
        "run -- PROGRAM",
    ];
    for said in said {
        assert!(ran.err.contains(said), "{said:?} is not in {}", ran.err);
    }
    let bundle = folder.path("bundle.toml");
    let empty = [b"__CLANG_OFFLOAD_BUNDLE__".as_slice(), &[0; 8]].concat();
    std::fs::write(&bundle, empty).unwrap();
    let ran = call(&[&bundle.to_string_lossy()]);
    assert!(ran.err.contains("is a code object, not a launch file"), "{}", ran.err);
    for args in [&["rnu", "--", "./a"][..], &["rnu"], &["kernels", "--", "a", "-b"]] {
        let ran = call(args);
        assert_eq!(ran.exit, Exit::CannotRun, "{args:?}");
        let said = format!("there is no subcommand and no launch file {}", args[0]);
        assert!(
            ran.err.contains(&said) && ran.err.contains("run -- PROGRAM"),
            "{}",
            ran.err
        );
    }
    // A file that is not there is one.
    let ran = call(&["nowhere/launch.toml"]);
    assert!(ran.err.contains("cannot read nowhere/launch.toml"), "{}", ran.err);
}
