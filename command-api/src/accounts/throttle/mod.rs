//! Slows down guessing, and bounds what costs money: per client's network, and per account, e-mail
//! address or phone number.
//!
//! All processes count together, in Postgres. While it is unavailable, each continues with what it
//! knows.

mod counter;
mod local;
mod shared;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use chrono::{DateTime, Days, NaiveTime, Utc};
use domain::account::{Email, Phone};
use event_log::Keyring;
use schemas::{AccountId, Receipt};
use service::HttpError;
use sqlx::PgPool;
use tokio::time::Instant;

use super::network::Network;
use super::password_queue::{Lane, Visitor};
use super::settings::AccountSettings;
use crate::CommandError;

use counter::{Admission, CountedBy, Counter, Full, Rule};
use local::Local;
use shared::Shared;

/// How many times as much as a network the wider one around it may do.
const WIDER: u32 = 16;

/// Within this time, an address may attempt as many sign-ins as it is allowed, refused ones
/// included. This bounds the lookups in Postgres.
const ASKED_WITHIN: Duration = Duration::from_mins(1);

/// All throttles of accounts.
#[derive(Debug)]
pub(crate) struct Throttles {
    rules: Rules,
    familiar_for: Duration,
    keyring: Keyring,
    shared: Arc<Shared>,
    local: Local,
}

#[derive(Debug)]
struct Rules {
    asks: Rule,
    sign_ins: Rule,
    failures: Rule,
    failures_for: Rule,
    failures_of_pair: Rule,
    registrations: Rule,
    registrations_of: Rule,
    repeats: Rule,
    codes: Rule,
    codes_a_day: Rule,
    codes_a_day_to_others: Rule,
}

impl Rules {
    fn new(settings: &AccountSettings) -> Self {
        let window = settings.failures_within;
        let of_account = settings.failures_per_account;
        let daily = |name, most| Rule {
            window: None,
            ..Rule::new(name, most, Duration::ZERO)
        };
        let day = settings.code_sends_per_day;
        Self {
            asks: Rule::new(
                "asks_of_address",
                settings.sign_ins_per_address,
                ASKED_WITHIN,
            ),
            sign_ins: Rule::new("sign_ins_of_address", settings.sign_ins_per_address, window),
            failures: Rule::new("failures_of_address", settings.failures_per_address, window)
                .sparing(),
            failures_for: Rule::new("failures_for_account", of_account, window).sparing(),
            failures_of_pair: Rule::new("failures_of_known_person", of_account, window),
            registrations: Rule::new(
                "registrations_of_address",
                settings.registrations_per_address,
                window,
            ),
            registrations_of: Rule::new("registrations_of_email", of_account, window),
            repeats: Rule::new(
                "tries_of_repeat",
                settings.code_tries.unsigned_abs(),
                settings.token_repeat,
            ),
            codes: Rule::new(
                "codes_of_address",
                settings.code_sends_per_address,
                settings.code_sends_within,
            ),
            codes_a_day: daily("codes_of_day", day),
            codes_a_day_to_others: daily("codes_of_day_to_others", day / 2),
        }
    }
}

/// Whether a code may still be sent today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Daily {
    /// It is counted.
    Left,
    /// The rest is for numbers that an account holds.
    KeptForHolders,
    UsedUp,
}

/// Who a client claims to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name<'n> {
    /// Something else in place of an e-mail address.
    NoEmail,
    Email(&'n Email),
    Phone(&'n Phone),
    Account(AccountId),
    /// Nobody yet: the holder of the link with this code.
    Invite(&'n str),
}

impl Name<'_> {
    fn parts(self) -> (&'static str, String) {
        match self {
            Self::NoEmail => ("email", String::new()),
            Self::Email(email) => ("email", email.as_str().to_owned()),
            Self::Phone(phone) => ("phone", phone.as_str().to_owned()),
            Self::Account(id) => ("account", id.to_string()),
            Self::Invite(code) => ("invite", (*code).to_owned()),
        }
    }
}

/// An attempt that counts as a failure unless it is reported as successful.
#[must_use]
#[derive(Debug)]
pub(crate) struct Try<'t> {
    throttles: &'t Throttles,
    /// The counters that it was put into and is taken out of if it succeeds.
    forgiving: Vec<Counter>,
    counted_by: CountedBy,
    /// The name and network that belong together if it succeeds.
    pair: Option<String>,
    visitor: Visitor,
}

impl Throttles {
    pub(super) fn new(settings: &AccountSettings, pool: &PgPool, keyring: &Keyring) -> Self {
        Self {
            rules: Rules::new(settings),
            familiar_for: settings.familiar_for,
            keyring: keyring.clone(),
            shared: Shared::new(pool, settings.throttle_patience),
            local: Local::default(),
        }
    }

    /// Begins a sign-in.
    pub(crate) async fn sign_in(&self, from: IpAddr, name: Name<'_>) -> Result<Try<'_>, HttpError> {
        let network = Network::of(from);
        let (kind, value) = name.parts();
        let pair = [kind, &value, &network.to_string()];
        let rules = &self.rules;
        let mut counters = self.of_network(&rules.sign_ins, network, false);
        counters.extend(self.of_network(&rules.failures, network, true));
        counters.push(self.counter(&rules.failures_for, &[kind, &value], true));
        counters.push(self.counter(&rules.failures_of_pair, &pair, true));
        let pair = Some(self.name("known", &pair));
        self.begin(network, Lane::SignIn, counters, pair).await
    }

    /// Begins a registration.
    pub(crate) async fn registration(
        &self,
        from: IpAddr,
        email: &Email,
    ) -> Result<Try<'_>, HttpError> {
        let network = Network::of(from);
        let (kind, value) = Name::Email(email).parts();
        let mut counters = self.of_network(&self.rules.registrations, network, false);
        counters.push(self.counter(&self.rules.registrations_of, &[kind, &value], true));
        let pair = Some(self.name("known", &[kind, &value, &network.to_string()]));
        let lane = Lane::Registration;
        self.begin(network, lane, counters, pair).await
    }

    /// Begins to compare a request with the earlier one under its `Idempotency-Key`.
    pub(crate) async fn repeat(
        &self,
        Visitor { lane, network }: Visitor,
        receipt: &Receipt,
    ) -> Result<Try<'_>, HttpError> {
        let counters = vec![self.counter(&self.rules.repeats, &[&receipt.key], true)];
        self.begin(network, lane, counters, None).await
    }

    /// Counts a request for a code.
    pub(crate) async fn code(&self, from: IpAddr) -> Result<(), HttpError> {
        let network = Network::of(from);
        let counters = self.of_network(&self.rules.codes, network, false);
        let entered = match self.ask(network) {
            Ok(()) => self.enter(&counters, None).await,
            Err(full) => Err(full),
        };
        entered.map(drop).map_err(|full| {
            count_refusal(&full);
            let wait = full.wait.unwrap_or_default();
            refused("too many codes were requested from this address", wait)
        })
    }

    /// Counts a code that is about to be sent, if one is left for the day: half of them are kept
    /// for numbers that are held, so that strangers cannot keep persons from signing in.
    pub(crate) async fn code_of_day(&self, is_held: bool, now: DateTime<Utc>) -> Daily {
        let day = now.date_naive().to_string();
        let of_all = &self.rules.codes_a_day;
        let mut counters = vec![self.counter(of_all, &[&day], false)];
        if !is_held {
            counters.push(self.counter(&self.rules.codes_a_day_to_others, &[&day], false));
        }
        match self.enter(&counters, None).await.inspect_err(count_refusal) {
            Ok(_) => Daily::Left,
            Err(full) if full.rule == of_all.name => Daily::UsedUp,
            Err(_) => Daily::KeptForHolders,
        }
    }

    fn of_network(&self, rule: &Rule, network: Network, forgives: bool) -> Vec<Counter> {
        let near = self.counter(rule, &[&network.to_string()], forgives);
        let around = network.around().map(|around| {
            let rule = rule.times(WIDER);
            self.counter(&rule, &[&around.to_string()], forgives)
        });
        std::iter::once(near).chain(around).collect()
    }

    fn counter(&self, rule: &Rule, parts: &[&str], forgives: bool) -> Counter {
        Counter::new(self.name(rule.name, parts), rule, forgives)
    }

    fn name(&self, purpose: &str, parts: &[&str]) -> String {
        let parts = std::iter::once(&purpose).chain(parts);
        let parts: Vec<&[u8]> = parts.map(|part| part.as_bytes()).collect();
        self.keyring.keyed_hash("throttle", &parts)
    }

    async fn begin(
        &self,
        network: Network,
        lane: Lane,
        counters: Vec<Counter>,
        pair: Option<String>,
    ) -> Result<Try<'_>, HttpError> {
        self.ask(network).map_err(too_many)?;
        let admission = self.enter(&counters, pair.as_deref()).await;
        let admission = admission.map_err(too_many)?;
        let lane = match lane {
            Lane::SignIn if admission.is_known => Lane::Known,
            lane => lane,
        };
        Ok(Try {
            throttles: self,
            forgiving: admission.forgiving(counters),
            counted_by: admission.by,
            pair,
            visitor: Visitor { lane, network },
        })
    }

    /// Counts a request of a network in this process only, whatever its outcome.
    fn ask(&self, network: Network) -> Result<(), Full> {
        let counters = self.of_network(&self.rules.asks, network, false);
        let decided = self.local.decide(&counters, None, Instant::now());
        decided.map(drop)
    }

    /// Counts an attempt in all of these counters, or in none if one is full. Full ones that spare a
    /// known client neither refuse nor count its attempt.
    async fn enter(&self, counters: &[Counter], pair: Option<&str>) -> Result<Admission, Full> {
        let now = Instant::now();
        if let Some(full) = self.local.still_full(counters, now) {
            return Err(full);
        }
        let Some(verdict) = self.shared.enter(counters, pair).await else {
            return self.local.decide(counters, pair, now);
        };
        let full = verdict.decision.as_ref().err().map(|(place, _)| *place);
        self.local.see(counters, &verdict.used, full, now);
        verdict.decision.map_err(|(_, full)| full)
    }
}

impl Try<'_> {
    /// The client that makes it, as the queue of passwords sees it.
    pub(crate) fn visitor(&self) -> Visitor {
        self.visitor
    }

    /// Reports the outcome: `Some` (a success), `None` (a failure), or an error of ours, which is
    /// not a guess.
    pub(crate) async fn settle<T, E>(self, outcome: &Result<Option<T>, E>) {
        match outcome {
            Ok(Some(_)) => self.succeeded().await,
            Ok(None) => {}
            Err(_) => self.forgive().await,
        }
    }

    /// Goes on with a result that the attempt needs. An error of ours is not a guess.
    pub(crate) async fn unless_failed<T, E>(self, result: Result<T, E>) -> Result<(Self, T), E> {
        match result {
            Ok(value) => Ok((self, value)),
            Err(error) => {
                self.forgive().await;
                Err(error)
            }
        }
    }

    /// Goes on with a command that the attempt needs. A refusal counts; an error of ours is not a
    /// guess.
    pub(crate) async fn unless_log_failed<T, R>(
        self,
        result: Result<T, CommandError<R>>,
    ) -> Result<(Self, T), CommandError<R>> {
        match result {
            Err(error @ CommandError::Log(_)) => {
                self.forgive().await;
                Err(error)
            }
            result => result.map(|value| (self, value)),
        }
    }

    /// Reports a success: the attempt is no failure, and the client is known here from now on.
    pub(crate) async fn succeeded(self) {
        let Throttles {
            local,
            shared,
            familiar_for,
            ..
        } = self.throttles;
        local.back(&self.forgiving);
        let now = Instant::now();
        if let Some(pair) = &self.pair {
            local.befriend(pair, now, now + *familiar_for);
        }
        let pair = self.pair.as_deref().map(|pair| (pair, *familiar_for));
        shared.back(self.counted_by_all(), pair).await;
    }

    /// Reports an error of ours: the attempt is not a guess.
    pub(crate) async fn forgive(self) {
        self.throttles.local.back(&self.forgiving);
        let shared = &self.throttles.shared;
        shared.back(self.counted_by_all(), None).await;
    }

    /// Nothing is taken out of Postgres that was counted while it was unavailable.
    fn counted_by_all(&self) -> &[Counter] {
        match self.counted_by {
            CountedBy::All => &self.forgiving,
            CountedBy::One => &[],
        }
    }
}

/// How long until the next day's codes are counted.
pub(super) fn until_tomorrow(now: DateTime<Utc>) -> Duration {
    let tomorrow = now.date_naive() + Days::new(1);
    let tomorrow = tomorrow.and_time(NaiveTime::MIN).and_utc();
    (tomorrow - now).to_std().unwrap_or_default()
}

fn count_refusal(full: &Full) {
    metrics::counter!("waypost_throttled_total", "limit" => full.rule).increment(1);
}

fn too_many(full: Full) -> HttpError {
    count_refusal(&full);
    refused("too many attempts", full.wait.unwrap_or_default())
}

/// 429: the client has to wait this long.
pub(super) fn refused(what: &str, wait: Duration) -> HttpError {
    let seconds = whole_seconds(wait);
    let message = format!("{what}; try again in {seconds} s");
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, message)
        .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

/// Rounded up, and at least one.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    let more = u64::from(duration.subsec_nanos() > 0);
    (duration.as_secs() + more).max(1)
}
