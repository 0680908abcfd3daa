//! Numbers in the forms that Python's format types ask for.

use super::error::{Error, wrong};

/// The most digits behind the point.
const MAX_PRECISION: usize = 1000;

/// The digits of a number without its sign, for one of the types `f e g %`, in either case.
pub(super) fn float_digits(value: f64, kind: char, precision: Option<usize>, alternate: bool) -> Result<String, Error> {
    let precision = precision.unwrap_or(6);
    if precision > MAX_PRECISION {
        return Err(wrong(format!(
            "a precision of {precision} digits, more than {MAX_PRECISION}"
        )));
    }
    let magnitude = value.abs();
    let text = if magnitude.is_nan() {
        "nan".to_owned()
    } else if magnitude.is_infinite() {
        "inf".to_owned()
    } else {
        match kind.to_ascii_lowercase() {
            'e' => exponential(magnitude, precision),
            'g' => general(magnitude, precision.max(1), alternate),
            '%' => format!("{:.precision$}%", magnitude * 100.0),
            _ => format!("{magnitude:.precision$}"),
        }
    };
    Ok(if kind.is_ascii_uppercase() {
        text.to_uppercase()
    } else {
        text
    })
}

fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, size) = exponent.strip_prefix('-').map_or(('+', exponent), |size| ('-', size));
    format!("{digits}e{sign}{size:0>2}")
}

fn general(value: f64, precision: usize, alternate: bool) -> String {
    let text = exponential(value, precision - 1);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let size: i32 = exponent.parse().unwrap_or(0);
    let trim = |digits: &str| -> String {
        if alternate || !digits.contains('.') {
            return digits.to_owned();
        }
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if size < -4 || size >= precision as i32 {
        return format!("{}e{exponent}", trim(digits));
    }
    let decimals = (precision as i32 - 1 - size).max(0) as usize;
    trim(&format!("{value:.decimals$}"))
}

/// The digits of an integer without its sign, for one of the types `d i u x X o b`.
pub(super) fn int_digits(value: i128, kind: char, alternate: bool) -> String {
    let magnitude = value.unsigned_abs();
    let (prefix, digits) = match kind {
        'x' => ("0x", format!("{magnitude:x}")),
        'X' => ("0X", format!("{magnitude:X}")),
        'o' => ("0o", format!("{magnitude:o}")),
        'b' => ("0b", format!("{magnitude:b}")),
        _ => ("", magnitude.to_string()),
    };
    if alternate { format!("{prefix}{digits}") } else { digits }
}

/// Digits with a mark between every three of the whole part.
pub(super) fn grouped(digits: &str, mark: char) -> String {
    let whole = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let mut out = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits[..whole].chars().enumerate() {
        if index > 0 && (whole - index).is_multiple_of(3) {
            out.push(mark);
        }
        out.push(digit);
    }
    out.push_str(&digits[whole..]);
    out
}
