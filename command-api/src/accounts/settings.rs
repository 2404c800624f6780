//! Settings of accounts.

use std::time::Duration;

use clap::Args;
use service::settings::{Secret, defaults, seconds};

use super::password::{self, Passwords};
use super::password_queue::Room;

/// How persons sign in.
#[derive(Clone, Debug, Args)]
pub struct AccountSettings {
    /// Lifetime of a one-time code.
    #[arg(long, env = "WAYPOST_CODE_SECONDS", default_value = "300", value_parser = seconds)]
    pub code_life: Duration,
    /// Wrong attempts that end a one-time code.
    #[arg(
        long,
        env = "WAYPOST_CODE_TRIES",
        default_value_t = 5,
        value_parser = clap::value_parser!(i32).range(1..)
    )]
    pub code_tries: i32,
    /// One-time codes sent to one phone number in `WAYPOST_CODE_SENDS_SECONDS`.
    #[arg(
        long,
        env = "WAYPOST_CODE_SENDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(i32).range(1..)
    )]
    pub code_sends: i32,
    /// Window in which sent codes are counted.
    #[arg(long, env = "WAYPOST_CODE_SENDS_SECONDS", default_value = "3600", value_parser = seconds)]
    pub code_sends_within: Duration,
    /// One-time codes that one client address (an IPv6 /64 counts as one) may request in
    /// `WAYPOST_CODE_SENDS_SECONDS`.
    #[arg(
        long,
        env = "WAYPOST_CODE_SENDS_PER_ADDRESS",
        default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub code_sends_per_address: u32,
    /// One-time codes that the whole installation sends per day (UTC). Half of them are reserved
    /// for numbers that belong to an account.
    #[arg(
        long,
        env = "WAYPOST_CODE_SENDS_PER_DAY",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(2..)
    )]
    pub code_sends_per_day: u32,
    /// Sign-ins of one client address (an IPv6 /64 counts as one) in `WAYPOST_SIGN_IN_SECONDS`,
    /// successful or not.
    #[arg(long, env = "WAYPOST_SIGN_INS_PER_ADDRESS", default_value_t = 5_000)]
    pub sign_ins_per_address: u32,
    /// Registrations of one client address (an IPv6 /64 counts as one) in
    /// `WAYPOST_SIGN_IN_SECONDS`.
    #[arg(
        long,
        env = "WAYPOST_REGISTRATIONS_PER_ADDRESS",
        default_value_t = 1_000
    )]
    pub registrations_per_address: u32,
    /// Failed sign-ins of one client address (an IPv6 /64 counts as one) in
    /// `WAYPOST_SIGN_IN_SECONDS`. People who have signed in from there before do not wait for
    /// others' failures.
    #[arg(long, env = "WAYPOST_SIGN_IN_PER_ADDRESS", default_value_t = 500)]
    pub failures_per_address: u32,
    /// Failed sign-ins for one e-mail address, account or phone number in
    /// `WAYPOST_SIGN_IN_SECONDS`. Where the person has signed in from before, only failures from
    /// there count.
    #[arg(long, env = "WAYPOST_SIGN_IN_PER_ACCOUNT", default_value_t = 50)]
    pub failures_per_account: u32,
    /// Window in which sign-ins and registrations are counted, across all processes.
    #[arg(long, env = "WAYPOST_SIGN_IN_SECONDS", default_value = "900", value_parser = seconds)]
    pub failures_within: Duration,
    /// How long a person counts as known at an address where they have signed in: others' failures
    /// do not slow them down there, and their passwords are hashed first.
    #[arg(long, env = "WAYPOST_FAMILIAR_SECONDS", default_value = "2592000", value_parser = seconds)]
    pub familiar_for: Duration,
    /// How long a limit check or a sign-in attempt waits for Postgres before this process counts
    /// alone.
    #[arg(
        long,
        env = "WAYPOST_LIMIT_PATIENCE_SECONDS",
        default_value = "0.5",
        hide = true,
        value_parser = seconds
    )]
    pub throttle_patience: Duration,
    /// How long an answer that contains an access token is repeated for the same `Idempotency-Key`,
    /// provided no token was revoked and no password changed since.
    #[arg(long, env = "WAYPOST_TOKEN_REPEAT_SECONDS", default_value = "900", value_parser = seconds)]
    pub token_repeat: Duration,
    /// Passwords hashed at the same time. Default: one fewer than there are processors.
    #[arg(long, env = "WAYPOST_PASSWORD_HASHES")]
    pub password_hashes: Option<usize>,
    /// Passwords that may wait to be hashed before sign-ins are answered 503: this many of people
    /// known at their address, as many of others, half as many of new accounts.
    #[arg(long, env = "WAYPOST_PASSWORD_WAITING", default_value_t = password::ROOM.in_lane)]
    pub password_waiting: usize,
    /// Passwords of one client address (an IPv6 /64 counts as one) that may wait to be hashed,
    /// before it is answered 429.
    #[arg(
        long,
        env = "WAYPOST_PASSWORD_WAITING_PER_ADDRESS",
        default_value_t = password::ROOM.of_network
    )]
    pub password_waiting_per_address: usize,
    /// How long a password waits to be hashed before the sign-in is answered 503.
    #[arg(
        long,
        env = "WAYPOST_PASSWORD_PATIENCE_SECONDS",
        default_value = "20",
        hide = true,
        value_parser = seconds
    )]
    pub password_patience: Duration,
    /// How codes are sent.
    #[command(flatten)]
    pub sms: SmsSettings,
}

/// How short messages are sent: by a service that speaks as Twilio's Messages API does, or, where
/// none is named, into the file `outbox/sms.ndjson` of the home folder.
#[derive(Clone, Debug, Args)]
pub struct SmsSettings {
    /// Base address of a service that speaks Twilio's Messages API, such as
    /// `https://api.twilio.com`. Without one, codes are appended to `outbox/sms.ndjson`.
    #[arg(long = "sms-url", env = "WAYPOST_SMS_URL")]
    pub url: Option<String>,
    /// Account at the service of `WAYPOST_SMS_URL`.
    #[arg(long = "sms-account", env = "WAYPOST_SMS_ACCOUNT", default_value = "")]
    pub account: String,
    /// Token of `WAYPOST_SMS_ACCOUNT`.
    #[arg(
        long = "sms-token",
        env = "WAYPOST_SMS_TOKEN",
        default_value = "",
        hide_env_values = true
    )]
    pub token: Secret<String>,
    /// Number that one-time codes come from.
    #[arg(long = "sms-from", env = "WAYPOST_SMS_FROM", default_value = "")]
    pub from: String,
    /// Text of the message; `{code}` stands for the code.
    #[arg(
        long = "sms-text",
        env = "WAYPOST_SMS_TEXT",
        default_value = "Your code is {code}"
    )]
    pub text: String,
    /// How long one attempt to send a one-time code may take.
    #[arg(
        long = "sms-timeout",
        env = "WAYPOST_SMS_TIMEOUT_SECONDS",
        default_value = "5",
        value_parser = seconds
    )]
    pub timeout: Duration,
    /// Attempts to send a one-time code.
    #[arg(
        long = "sms-attempts",
        env = "WAYPOST_SMS_ATTEMPTS",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub attempts: u32,
}

impl AccountSettings {
    /// Returns the password hasher for these settings.
    pub fn passwords(&self) -> Passwords {
        let at_once = self.password_hashes.unwrap_or_else(password::at_once);
        let room = Room {
            in_lane: self.password_waiting,
            of_network: self.password_waiting_per_address,
        };
        Passwords::new(at_once, room, self.password_patience)
    }
}

impl Default for AccountSettings {
    fn default() -> Self {
        defaults()
    }
}

impl Default for SmsSettings {
    fn default() -> Self {
        defaults()
    }
}
