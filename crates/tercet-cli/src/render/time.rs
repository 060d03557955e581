//! Human-readable times.

/// Unix seconds with their date: `1700000000 (2023-11-14 22:13:20 UTC)`. Other text is returned unchanged.
pub(crate) fn utc(seconds: &str) -> String {
    let Ok(number) = seconds.parse::<i64>() else { return seconds.to_owned() };
    // End of the year 9999.
    if !(0..253_402_300_800).contains(&number) {
        return seconds.to_owned();
    }
    let (days, second) = (number / 86_400, number % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{seconds} ({year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC)")
}

/// Year, month and day of a number of days since 1970-01-01. The algorithm starts years in March, so that the leap
/// day is the last day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        for (seconds, date) in [
            ("0", "1970-01-01 00:00:00"),
            ("951782399", "2000-02-28 23:59:59"),
            ("951782400", "2000-02-29 00:00:00"),
            ("1700000000", "2023-11-14 22:13:20"),
            ("4107542399", "2100-02-28 23:59:59"),
            ("4107542400", "2100-03-01 00:00:00"),
            ("253402300799", "9999-12-31 23:59:59"),
        ] {
            assert_eq!(utc(seconds), format!("{seconds} ({date} UTC)"));
        }
    }

    #[test]
    fn other_text_is_unchanged() {
        for text in ["", "yesterday", "-5", "99999999999999", "2024-01-01"] {
            assert_eq!(utc(text), text);
        }
    }
}
