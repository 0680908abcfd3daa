//! Dates for templates: `strftime_now`, in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

/// The time in the form that `format` asks for, with the letters of C's `strftime` that stand for dates and times of day.
pub(super) fn format(time: SystemTime, format: &str) -> Result<String, String> {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let (year, month, day, day_of_year) = civil(days);
    let month_name = MONTHS.get(month).copied().unwrap_or_default();
    let weekday = WEEKDAYS.get((days % 7) as usize).copied().unwrap_or_default();
    let month = month + 1;
    let mut out = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        // `%-d` is the number without zeros or spaces before it.
        let mut letter = characters.next();
        let bare = letter == Some('-');
        if bare {
            letter = characters.next();
        }
        let text = match letter {
            Some('Y') => format!("{year}"),
            Some('y') => format!("{:02}", year % 100),
            Some('m') => format!("{month:02}"),
            Some('d') => format!("{day:02}"),
            Some('e') => format!("{day:2}"),
            Some('j') => format!("{day_of_year:03}"),
            Some('B') => month_name.to_owned(),
            Some('b' | 'h') => month_name.chars().take(3).collect(),
            Some('A') => weekday.to_owned(),
            Some('a') => weekday.chars().take(3).collect(),
            Some('H') => format!("{hour:02}"),
            Some('I') => format!("{:02}", (hour + 11) % 12 + 1),
            Some('M') => format!("{minute:02}"),
            Some('S') => format!("{second:02}"),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('F') => format!("{year}-{month:02}-{day:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('Z') => "UTC".to_owned(),
            Some('z') => "+0000".to_owned(),
            Some('%') => "%".to_owned(),
            other => {
                let letter = other.map(String::from).unwrap_or_default();
                return Err(format!("strftime_now does not know %{letter}"));
            }
        };
        let short = text.trim_start_matches(['0', ' ']);
        out.push_str(match (bare, short) {
            (true, "") => "0",
            (true, short) => short,
            (false, _) => &text,
        });
    }
    Ok(out)
}

/// Year, month from 0, day of the month from 1 and day of the year from 1 of a day counted from 1970-01-01.
fn civil(mut days: u64) -> (u64, usize, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    // 400 years always have as many days; that leaves at most 400 steps for the rest.
    let mut year = 1970 + 400 * (days / 146_097);
    days %= 146_097;
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let day_of_year = days + 1;
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 0;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1, day_of_year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minus_takes_zeros_and_spaces_away() {
        // From Python, as below.
        let time = UNIX_EPOCH + Duration::from_secs(951_782_400);
        assert_eq!(format(time, "%-d %-m %-H %-I %-M %-e").unwrap(), "29 2 0 12 0 29");
    }

    #[test]
    fn dates_at_the_corners_of_the_calendar() {
        // From Python: datetime.fromtimestamp(s, timezone.utc).strftime("%A %d %b %Y %j %H:%M:%S %I%p").
        for (seconds, expected) in [
            (0, "Thursday 01 Jan 1970 001 00:00:00 12AM"),
            (951_782_399, "Monday 28 Feb 2000 059 23:59:59 11PM"),
            (951_782_400, "Tuesday 29 Feb 2000 060 00:00:00 12AM"),
            (1_735_646_400, "Tuesday 31 Dec 2024 366 12:00:00 12PM"),
            (4_107_542_400, "Monday 01 Mar 2100 060 00:00:00 12AM"),
            (13_574_649_599, "Tuesday 29 Feb 2400 060 23:59:59 11PM"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(format(time, "%A %d %b %Y %j %H:%M:%S %I%p").unwrap(), expected);
        }
        assert!(format(UNIX_EPOCH, "%Q").is_err());
        assert!(format(UNIX_EPOCH, "100%").is_err());
    }
}
