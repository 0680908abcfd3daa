//! `printf` as the C standard has it, with arguments in words of 8 bytes. Strings lie among the arguments, padded with zeros.

use std::iter::Peekable;

/// A conversion: flags, width, precision.
#[derive(Default, Clone, Copy)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// Bits of an integer.
    bits: u32,
}

/// Longest field and most digits: more is damage.
const MOST: u64 = 1 << 16;

/// Text up to the first zero byte, and the words it takes with it.
fn text(words: &[u64]) -> (Vec<u8>, usize) {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    let taken = text.len() / 8 + 1;
    (text, taken.min(words.len()))
}

/// What a message prints: the format, then its arguments. Output ends where an argument is missing.
pub(crate) fn format(message: &[u64]) -> Vec<u8> {
    let (format, taken) = text(message);
    let (mut words, mut out) = (&message[taken..], Vec::new());
    let mut rest = format.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        if rest.next_if_eq(&b'%').is_some() {
            out.push(b'%');
            continue;
        }
        let mut left = words;
        let mut next = || {
            let (&word, more) = left.split_first()?;
            left = more;
            Some(word)
        };
        let mut spec = Spec {
            bits: 32,
            ..Spec::default()
        };
        while let Some(flag) = rest.next_if(|byte| b"-+ #0".contains(byte)) {
            match flag {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternative = true,
                _ => spec.zeros = true,
            }
        }
        let Some(width) = number(&mut rest, &mut next) else {
            return out;
        };
        spec.left |= width < 0;
        spec.width = width.unsigned_abs().min(MOST) as usize;
        if rest.next_if_eq(&b'.').is_some() {
            let Some(precision) = number(&mut rest, &mut next) else {
                return out;
            };
            spec.precision = usize::try_from(precision).ok().map(|n| n.min(MOST as usize));
        }
        while let Some(length) = rest.next_if(|byte| b"hlLqjzt".contains(byte)) {
            spec.bits = match length {
                b'h' => spec.bits / 2,
                _ => 64,
            };
        }
        let Some(conversion) = rest.next() else { return out };
        if conversion == b's' {
            words = left;
            if words.is_empty() {
                return out;
            }
            let (mut string, taken) = text(words);
            words = &words[taken..];
            string.truncate(spec.precision.unwrap_or(usize::MAX));
            pad(&mut out, &spec, b"", &string, false);
            continue;
        }
        let Some(word) = next() else { return out };
        words = left;
        convert(&mut out, spec, conversion, word);
    }
    out
}

/// A number in the format, or an argument in its place.
fn number(rest: &mut Peekable<impl Iterator<Item = u8>>, next: &mut impl FnMut() -> Option<u64>) -> Option<i64> {
    if rest.next_if_eq(&b'*').is_some() {
        return Some(i64::from(next()? as i32));
    }
    let mut value = 0u64;
    while let Some(digit) = rest.next_if(u8::is_ascii_digit) {
        value = (value * 10 + u64::from(digit - b'0')).min(MOST);
    }
    Some(value as i64)
}

fn convert(out: &mut Vec<u8>, spec: Spec, conversion: u8, word: u64) {
    let unused = 64 - spec.bits.max(8);
    let unsigned = word << unused >> unused;
    match conversion {
        b'd' | b'i' => {
            let value = (word << unused) as i64 >> unused;
            integer(out, spec, sign(&spec, value < 0), &value.unsigned_abs().to_string());
        }
        b'u' => integer(out, spec, "", &unsigned.to_string()),
        b'o' => {
            let digits = format!("{unsigned:o}");
            let lead = spec.alternative && !digits.starts_with('0');
            integer(out, spec, "", &if lead { format!("0{digits}") } else { digits });
        }
        b'x' => integer(out, spec, prefix(&spec, unsigned, "0x"), &format!("{unsigned:x}")),
        b'X' => integer(out, spec, prefix(&spec, unsigned, "0X"), &format!("{unsigned:X}")),
        b'c' => pad(out, &spec, b"", &[word as u8], false),
        b'p' if word == 0 => pad(out, &spec, b"", b"(nil)", false),
        b'p' => pad(out, &spec, b"0x", format!("{word:x}").as_bytes(), false),
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => float(out, spec, conversion, f64::from_bits(word)),
        // Also %n: where a kernel wants a count written, the host writes nothing.
        _ => {}
    }
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    }
}

fn prefix(spec: &Spec, value: u64, prefix: &'static str) -> &'static str {
    if spec.alternative && value != 0 { prefix } else { "" }
}

fn integer(out: &mut Vec<u8>, spec: Spec, prefix: &str, digits: &str) {
    let digits = match spec.precision {
        Some(0) if digits == "0" => String::new(),
        Some(least) => format!("{digits:0>least$}"),
        None => digits.to_owned(),
    };
    pad(
        out,
        &spec,
        prefix.as_bytes(),
        digits.as_bytes(),
        spec.precision.is_none(),
    );
}

/// Appends prefix and body in a field; `zeros`: the flag 0 fills between them.
fn pad(out: &mut Vec<u8>, spec: &Spec, prefix: &[u8], body: &[u8], zeros: bool) {
    let fill = spec.width.saturating_sub(prefix.len() + body.len());
    let (zeros, left) = (zeros && spec.zeros && !spec.left, spec.left);
    let blanks = |out: &mut Vec<u8>, wanted: bool, with: u8| {
        out.extend(std::iter::repeat_n(with, if wanted { fill } else { 0 }))
    };
    blanks(out, !zeros && !left, b' ');
    out.extend(prefix);
    blanks(out, zeros, b'0');
    out.extend(body);
    blanks(out, left, b' ');
}

fn float(out: &mut Vec<u8>, spec: Spec, conversion: u8, value: f64) {
    let sign = sign(&spec, value.is_sign_negative());
    let size = value.abs();
    let upper = conversion.is_ascii_uppercase();
    let body = if size.is_finite() {
        match conversion.to_ascii_lowercase() {
            b'f' => fixed(&spec, size, spec.precision.unwrap_or(6)),
            b'e' => scientific(&spec, size, spec.precision.unwrap_or(6)),
            b'g' => shorter(&spec, size),
            _ => hexadecimal(size),
        }
    } else if size.is_nan() {
        "nan".to_owned()
    } else {
        "inf".to_owned()
    };
    let hex = conversion.eq_ignore_ascii_case(&b'a') && size.is_finite();
    let prefix = format!("{sign}{}", if hex { "0x" } else { "" });
    let case = |text: String| if upper { text.to_uppercase() } else { text };
    let (prefix, body) = (case(prefix), case(body));
    pad(out, &spec, prefix.as_bytes(), body.as_bytes(), size.is_finite());
}

fn fixed(spec: &Spec, size: f64, precision: usize) -> String {
    let dot = if spec.alternative && precision == 0 { "." } else { "" };
    format!("{size:.precision$}{dot}")
}

/// Digits and exponent of a scientific number.
fn parts(size: f64, precision: usize) -> (String, i32) {
    let text = format!("{size:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.to_owned(), exponent.parse().unwrap_or(0))
}

fn exponent(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.abs())
}

fn scientific(spec: &Spec, size: f64, precision: usize) -> String {
    let (digits, e) = parts(size, precision);
    let dot = if spec.alternative && precision == 0 { "." } else { "" };
    format!("{digits}{dot}{}", exponent(e))
}

fn shorter(spec: &Spec, size: f64) -> String {
    let precision = spec.precision.unwrap_or(6).max(1);
    let (digits, e) = parts(size, precision - 1);
    let strip = |text: String| {
        if spec.alternative || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if e < -4 || e >= precision as i32 {
        return format!("{}{}", strip(digits), exponent(e));
    }
    strip(fixed(spec, size, (precision as i32 - 1 - e).max(0) as usize))
}

/// All digits of a number to the base 16, without its prefix.
fn hexadecimal(size: f64) -> String {
    let (fraction, biased) = (size.to_bits() & ((1 << 52) - 1), (size.to_bits() >> 52) as i32);
    let (lead, e) = match (biased, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        _ => (1, biased - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let dot = if digits.is_empty() { "" } else { "." };
    format!("{lead}{dot}{digits}p{e:+}")
}

#[cfg(test)]
mod tests {
    use super::format;

    fn string(text: &str) -> Vec<u64> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(bytes.len() / 8 * 8 + 8, 0);
        bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect()
    }

    fn print(text: &str, arguments: &[u64]) -> String {
        let message = [string(text), arguments.to_vec()].concat();
        String::from_utf8(format(&message)).expect("text")
    }

    /// Expected values as glibc prints them.
    #[test]
    fn integers() {
        assert_eq!(print("%d|%i|%u", &[-5i64 as u64, 7, 0xFFFF_FFFF]), "-5|7|4294967295");
        assert_eq!(print("%d", &[0xFFFF_FFFF]), "-1");
        assert_eq!(
            print("%ld %lld", &[1 << 40, -(1i64 << 40) as u64]),
            "1099511627776 -1099511627776"
        );
        assert_eq!(print("%hd %hhd %hhu", &[0x1_8000, 0x180, 0x1FF]), "-32768 -128 255");
        assert_eq!(print("%x %X %#x %#o %o", &[255, 255, 255, 8, 8]), "ff FF 0xff 010 10");
        assert_eq!(
            print("[%5d][%-5d][%05d][%+d][% d]", &[42, 42, 42, 42, 42]),
            "[   42][42   ][00042][+42][ 42]"
        );
        assert_eq!(
            print("[%.3d][%6.3d][%-*d][%*d]", &[7, 7, 4, 7, -4i32 as u64, 7]),
            "[007][   007][7   ][7   ]"
        );
        assert_eq!(print("%#06x %.0d|", &[10, 0]), "0x000a |");
    }

    #[test]
    fn text_and_pointers() {
        let message = [
            string("%s and %10.3s|%-6s|%c%c%%\n"),
            string("abcdefgh"),
            string("wxyz"),
            string("no"),
            vec![65, 66],
        ];
        assert_eq!(
            String::from_utf8(format(&message.concat())).as_deref(),
            Ok("abcdefgh and        wxy|no    |AB%\n")
        );
        assert_eq!(print("%p %p", &[0x1234, 0]), "0x1234 (nil)");
        assert_eq!(print("%d%n%d", &[1, 99, 2]), "12");
        assert_eq!(
            print("a %d b %d c", &[1]),
            "a 1 b ",
            "ends where an argument is missing"
        );
        assert_eq!(print("%", &[1]), "");
        assert_eq!(format(&[]), b"");
    }

    #[test]
    fn floating_point() {
        let bits = f64::to_bits;
        assert_eq!(
            print("%f %.2f %.0f", &[bits(1.5), bits(2.675), bits(0.5)]),
            "1.500000 2.67 0"
        );
        assert_eq!(
            print("%e %.3E", &[bits(12345.678), bits(1e-10)]),
            "1.234568e+04 1.000E-10"
        );
        assert_eq!(
            print("%g %g %g %g", &[bits(0.0001), bits(0.00001), bits(1e6), bits(123456.0)]),
            "0.0001 1e-05 1e+06 123456"
        );
        assert_eq!(
            print("%g %#g %G", &[bits(2.5), bits(2.5), bits(1e100)]),
            "2.5 2.50000 1E+100"
        );
        assert_eq!(
            print("[%8.2f][%-8.2f][%08.2f][%+f]", &[bits(-3.25159); 4]),
            "[   -3.25][-3.25   ][-0003.25][-3.251590]"
        );
        assert_eq!(
            print(
                "%f %F [%05f]",
                &[bits(f64::INFINITY), bits(f64::NAN), bits(-f64::INFINITY)]
            ),
            "inf NAN [ -inf]"
        );
        assert_eq!(
            print("%a %a %A", &[bits(1.0), bits(0.15625), bits(-255.0)]),
            "0x1p+0 0x1.4p-3 -0X1.FEP+7"
        );
    }
}
