//! Numbers formatted for people.

/// Formats a whole number with grouped thousands.
pub(super) fn grouped(number: impl Into<i128>) -> String {
    let number = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 2);
    if number < 0 {
        text.push('-');
    }
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Currencies whose amounts do not have two decimals, by ISO 4217. Scripts read the same text.
pub(super) const DECIMALS: &str = "BIF:0 CLP:0 DJF:0 GNF:0 ISK:0 JPY:0 KMF:0 KRW:0 PYG:0 RWF:0 \
                                   UGX:0 UYI:0 VND:0 VUV:0 XAF:0 XOF:0 XPF:0 BHD:3 IQD:3 JOD:3 \
                                   KWD:3 LYD:3 OMR:3 TND:3 CLF:4 UYW:4";

/// Formats minor units as an amount of most currencies.
pub(super) fn money(minor: impl Into<i128>) -> String {
    money_in("", minor)
}

/// Formats minor units as an amount of a currency, of most currencies if it is not given.
pub(super) fn money_in(currency: &str, minor: impl Into<i128>) -> String {
    let minor = minor.into();
    let sign = if minor < 0 { "-" } else { "" };
    let decimals = decimals_of(currency);
    let unit = 10_u128.pow(decimals);
    let (major, rest) = (minor.unsigned_abs() / unit, minor.unsigned_abs() % unit);
    let major = grouped(i128::try_from(major).unwrap_or(i128::MAX));
    if decimals == 0 {
        return format!("{sign}{major}");
    }
    let width = decimals as usize;
    format!("{sign}{major}.{rest:0width$}")
}

fn decimals_of(currency: &str) -> u32 {
    let currency = currency.trim();
    let mut known = DECIMALS.split(' ').filter_map(|one| one.split_once(':'));
    let found = known.find(|(code, _)| code.eq_ignore_ascii_case(currency));
    found
        .and_then(|(_, decimals)| decimals.parse().ok())
        .unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_their_thousands_and_decimals() {
        for (minor, text) in [
            (0, "0.00"),
            (5, "0.05"),
            (-5, "-0.05"),
            (99_999, "999.99"),
            (-1_234_567, "-12,345.67"),
            (100_000_000, "1,000,000.00"),
            (i64::MAX, "92,233,720,368,547,758.07"),
        ] {
            assert_eq!(money(minor), text);
        }
        for (currency, text) in [
            ("EUR", "-12,345.67"),
            ("jpy ", "-1,234,567"),
            ("KWD", "-1,234.567"),
            ("CLF", "-123.4567"),
            ("none", "-12,345.67"),
        ] {
            assert_eq!(money_in(currency, -1_234_567), text);
        }
        assert_eq!(money_in("KWD", 5), "0.005");
        assert_eq!(grouped(-1_000), "-1,000");
        assert_eq!(grouped(100), "100");
    }
}
