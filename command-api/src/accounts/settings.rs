//! Settings of accounts.

use std::time::Duration;

use clap::Args;
use service::settings::{Secret, seconds};

use super::password::{self, Passwords};
use super::turns::Room;

/// How persons sign in.
#[derive(Clone, Debug, Args)]
pub struct AccountSettings {
    /// The life of a one-time code: `WAYPOST_CODE_SECONDS`, 300.
    #[arg(long, env = "WAYPOST_CODE_SECONDS", default_value = "300", value_parser = seconds)]
    pub code_life: Duration,
    /// Wrong tries that end a one-time code: `WAYPOST_CODE_TRIES`, 5.
    #[arg(
        long,
        env = "WAYPOST_CODE_TRIES",
        default_value_t = 5,
        value_parser = clap::value_parser!(i32).range(1..)
    )]
    pub code_tries: i32,
    /// Codes that are sent to one phone number within `WAYPOST_CODE_SENDS_SECONDS`:
    /// `WAYPOST_CODE_SENDS`, 5.
    #[arg(
        long,
        env = "WAYPOST_CODE_SENDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(i32).range(1..)
    )]
    pub code_sends: i32,
    /// The time in which sent codes are counted: `WAYPOST_CODE_SENDS_SECONDS`, 3600.
    #[arg(long, env = "WAYPOST_CODE_SENDS_SECONDS", default_value = "3600", value_parser = seconds)]
    pub code_sends_within: Duration,
    /// Codes that one client address (an IPv6 /64 is one) may ask for within
    /// `WAYPOST_CODE_SENDS_SECONDS`: `WAYPOST_CODE_SENDS_PER_ADDRESS`, 200.
    #[arg(
        long,
        env = "WAYPOST_CODE_SENDS_PER_ADDRESS",
        default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub code_sends_per_address: u32,
    /// Codes that the whole installation sends on one day (UTC), half of them kept for numbers
    /// that an account holds: `WAYPOST_CODE_SENDS_PER_DAY`, 10000.
    #[arg(
        long,
        env = "WAYPOST_CODE_SENDS_PER_DAY",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(2..)
    )]
    pub code_sends_per_day: u32,
    /// Sign-ins of one client address (an IPv6 /64 is one) within `WAYPOST_SIGN_IN_SECONDS`,
    /// whatever comes of them, before it has to wait: `WAYPOST_SIGN_INS_PER_ADDRESS`, 5000.
    #[arg(long, env = "WAYPOST_SIGN_INS_PER_ADDRESS", default_value_t = 5_000)]
    pub sign_ins_per_address: u32,
    /// Registrations of one client address (an IPv6 /64 is one) within `WAYPOST_SIGN_IN_SECONDS`,
    /// before it has to wait: `WAYPOST_REGISTRATIONS_PER_ADDRESS`, 1000.
    #[arg(
        long,
        env = "WAYPOST_REGISTRATIONS_PER_ADDRESS",
        default_value_t = 1_000
    )]
    pub registrations_per_address: u32,
    /// Failed sign-ins of one client address (an IPv6 /64 is one) within
    /// `WAYPOST_SIGN_IN_SECONDS`, before it has to wait: `WAYPOST_SIGN_IN_PER_ADDRESS`, 500.
    /// Persons who have signed in from there before do not wait for others' failures.
    #[arg(long, env = "WAYPOST_SIGN_IN_PER_ADDRESS", default_value_t = 500)]
    pub failures_per_address: u32,
    /// Failed sign-ins for one e-mail address or phone number within `WAYPOST_SIGN_IN_SECONDS`,
    /// before it has to wait: `WAYPOST_SIGN_IN_PER_ACCOUNT`, 50. Where the person has signed in
    /// from before, only failures from there make them wait.
    #[arg(long, env = "WAYPOST_SIGN_IN_PER_ACCOUNT", default_value_t = 50)]
    pub failures_per_account: u32,
    /// The time in which sign-ins and registrations are counted, by all processes together:
    /// `WAYPOST_SIGN_IN_SECONDS`, 900.
    #[arg(long, env = "WAYPOST_SIGN_IN_SECONDS", default_value = "900", value_parser = seconds)]
    pub failures_within: Duration,
    /// How long a person is known at an address where they have signed in:
    /// `WAYPOST_FAMILIAR_SECONDS`, 30 days.
    #[arg(long, env = "WAYPOST_FAMILIAR_SECONDS", default_value = "2592000", value_parser = seconds)]
    pub familiar_for: Duration,
    /// How long Postgres may take to count a try, before this process counts alone:
    /// `WAYPOST_LIMIT_PATIENCE_SECONDS`, as for limits.
    #[arg(
        long,
        env = "WAYPOST_LIMIT_PATIENCE_SECONDS",
        default_value = "0.5",
        hide = true,
        value_parser = seconds
    )]
    pub throttle_patience: Duration,
    /// How long an answer that holds a token is repeated to a repeat with the same
    /// `Idempotency-Key`: `WAYPOST_TOKEN_REPEAT_SECONDS`, 900.
    #[arg(long, env = "WAYPOST_TOKEN_REPEAT_SECONDS", default_value = "900", value_parser = seconds)]
    pub token_repeat: Duration,
    /// Passwords hashed at once: `WAYPOST_PASSWORD_HASHES`, one fewer than there are processors.
    #[arg(long, env = "WAYPOST_PASSWORD_HASHES")]
    pub password_hashes: Option<usize>,
    /// Passwords that may wait to be hashed, before sign-ins are answered 503: so many of persons
    /// known at their address, so many of others, half as many of new accounts:
    /// `WAYPOST_PASSWORD_WAITING`, 200.
    #[arg(long, env = "WAYPOST_PASSWORD_WAITING", default_value_t = 200)]
    pub password_waiting: usize,
    /// And of one client address: `WAYPOST_PASSWORD_WAITING_PER_ADDRESS`, 100.
    #[arg(
        long,
        env = "WAYPOST_PASSWORD_WAITING_PER_ADDRESS",
        default_value_t = 100
    )]
    pub password_waiting_per_address: usize,
    /// How codes are sent.
    #[command(flatten)]
    pub sms: SmsSettings,
}

/// How short messages are sent: by a service that speaks as Twilio's Messages API does, or, where
/// none is named, into the file `outbox/sms.ndjson` of the home folder.
#[derive(Clone, Debug, Args)]
pub struct SmsSettings {
    /// The base address of the service, such as `https://api.twilio.com`: `WAYPOST_SMS_URL`, none.
    #[arg(long = "sms-url", env = "WAYPOST_SMS_URL")]
    pub url: Option<String>,
    /// The account there: `WAYPOST_SMS_ACCOUNT`, none.
    #[arg(long = "sms-account", env = "WAYPOST_SMS_ACCOUNT", default_value = "")]
    pub account: String,
    /// The account's token: `WAYPOST_SMS_TOKEN`, none.
    #[arg(
        long = "sms-token",
        env = "WAYPOST_SMS_TOKEN",
        default_value = "",
        hide_env_values = true
    )]
    pub token: Secret<String>,
    /// The number that messages come from: `WAYPOST_SMS_FROM`, none.
    #[arg(long = "sms-from", env = "WAYPOST_SMS_FROM", default_value = "")]
    pub from: String,
    /// The message; `{code}` stands for the code: `WAYPOST_SMS_TEXT`, `Your code is {code}`.
    #[arg(
        long = "sms-text",
        env = "WAYPOST_SMS_TEXT",
        default_value = "Your code is {code}"
    )]
    pub text: String,
    /// How long one attempt to send may take: `WAYPOST_SMS_TIMEOUT_SECONDS`, 5.
    #[arg(
        long = "sms-timeout",
        env = "WAYPOST_SMS_TIMEOUT_SECONDS",
        default_value = "5",
        value_parser = seconds
    )]
    pub timeout: Duration,
    /// Attempts to send one message: `WAYPOST_SMS_ATTEMPTS`, 3.
    #[arg(
        long = "sms-attempts",
        env = "WAYPOST_SMS_ATTEMPTS",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub attempts: u32,
}

impl AccountSettings {
    /// What hashes passwords under these settings.
    pub fn passwords(&self) -> Passwords {
        let at_once = self.password_hashes.unwrap_or_else(password::at_once);
        let room = Room {
            in_lane: self.password_waiting,
            of_network: self.password_waiting_per_address,
        };
        Passwords::new(at_once, room)
    }
}

impl Default for AccountSettings {
    fn default() -> Self {
        Self {
            code_life: Duration::from_mins(5),
            code_tries: 5,
            code_sends: 5,
            code_sends_within: Duration::from_hours(1),
            code_sends_per_address: 200,
            code_sends_per_day: 10_000,
            sign_ins_per_address: 5_000,
            registrations_per_address: 1_000,
            failures_per_address: 500,
            failures_per_account: 50,
            failures_within: Duration::from_mins(15),
            familiar_for: Duration::from_hours(30 * 24),
            throttle_patience: Duration::from_millis(500),
            token_repeat: Duration::from_mins(15),
            password_hashes: None,
            password_waiting: password::ROOM.in_lane,
            password_waiting_per_address: password::ROOM.of_network,
            sms: SmsSettings::default(),
        }
    }
}

impl Default for SmsSettings {
    fn default() -> Self {
        Self {
            url: None,
            account: String::new(),
            token: Secret::new(String::new()),
            from: String::new(),
            text: "Your code is {code}".to_owned(),
            timeout: Duration::from_secs(5),
            attempts: 3,
        }
    }
}
