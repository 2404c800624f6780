//! Settings of accounts.

use std::time::Duration;

use clap::Args;
use service::settings::{Secret, seconds};

use super::password::Passwords;

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
    /// How long a phone number named at registration waits to be verified:
    /// `WAYPOST_PHONE_CLAIM_SECONDS`, 900.
    #[arg(long, env = "WAYPOST_PHONE_CLAIM_SECONDS", default_value = "900", value_parser = seconds)]
    pub phone_claim: Duration,
    /// Failed sign-ins of one client address (an IPv6 /64 is one) within
    /// `WAYPOST_SIGN_IN_SECONDS`, before it has to wait: `WAYPOST_SIGN_IN_PER_ADDRESS`, 500.
    #[arg(long, env = "WAYPOST_SIGN_IN_PER_ADDRESS", default_value_t = 500)]
    pub failures_per_address: u32,
    /// Failed sign-ins for one e-mail address or phone number within `WAYPOST_SIGN_IN_SECONDS`,
    /// before it has to wait: `WAYPOST_SIGN_IN_PER_ACCOUNT`, 50.
    #[arg(long, env = "WAYPOST_SIGN_IN_PER_ACCOUNT", default_value_t = 50)]
    pub failures_per_account: u32,
    /// The time in which failed sign-ins are counted, by each process for itself:
    /// `WAYPOST_SIGN_IN_SECONDS`, 900.
    #[arg(long, env = "WAYPOST_SIGN_IN_SECONDS", default_value = "900", value_parser = seconds)]
    pub failures_within: Duration,
    /// Passwords hashed at once: `WAYPOST_PASSWORD_HASHES`, as many as there are processors.
    #[arg(long, env = "WAYPOST_PASSWORD_HASHES")]
    pub password_hashes: Option<usize>,
    /// Passwords that may wait to be hashed, before sign-ins are answered 503:
    /// `WAYPOST_PASSWORD_WAITING`, 200.
    #[arg(long, env = "WAYPOST_PASSWORD_WAITING", default_value_t = 200)]
    pub password_waiting: usize,
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
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let at_once = self.password_hashes.unwrap_or(processors);
        Passwords::new(at_once, self.password_waiting)
    }
}

impl Default for AccountSettings {
    fn default() -> Self {
        Self {
            code_life: Duration::from_mins(5),
            code_tries: 5,
            code_sends: 5,
            code_sends_within: Duration::from_hours(1),
            phone_claim: Duration::from_mins(15),
            failures_per_address: 500,
            failures_per_account: 50,
            failures_within: Duration::from_mins(15),
            password_hashes: None,
            password_waiting: 200,
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
