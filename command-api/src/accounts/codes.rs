//! One-time codes, in Postgres: each step is one statement on the row of a number, so that any
//! number of processes agree. The receipt of a request for a code is written in the transaction of
//! the code, so that a repeat finds either both or neither.

use std::time::Duration;

use domain::account::Phone;
use event_log::Keyring;
use schemas::Receipt;
use sqlx::postgres::types::PgInterval;
use sqlx::{PgConnection, PgPool};

use super::settings::AccountSettings;
use crate::Random;

/// Expired rows deleted at each new code.
const SWEPT_AT_ONCE: i64 = 100;

/// The outcome of requesting a code.
pub(super) enum Issue {
    /// The code has to be sent now.
    New(String),
    /// It was already sent for the same request, and is valid for this much longer, if at all.
    Repeat(Duration),
    /// The same `Idempotency-Key` was used with another request.
    OtherRequest,
    /// Too many were sent recently; the next one has to wait this long.
    TooMany(Duration),
}

/// The outcome of trying a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    Right,
    /// Or used, expired, or tried too often.
    Wrong,
}

/// The issued codes.
pub(super) struct Codes {
    pool: PgPool,
    keyring: Keyring,
    random: Random,
}

impl Codes {
    pub(super) fn new(pool: PgPool, keyring: Keyring) -> Self {
        Self {
            pool,
            keyring,
            random: Random::default(),
        }
    }

    /// Creates a code for a number in place of the previous one, unless the request is a repeat or
    /// too many were created. Its receipt is kept for the given time.
    pub(super) async fn issue(
        &self,
        settings: &AccountSettings,
        phone: &Phone,
        receipt: Option<(&Receipt, Duration)>,
    ) -> Result<Issue, sqlx::Error> {
        let name = self.name(phone);
        let mut transaction = self.pool.begin().await?;
        if let Some((receipt, lasts)) = receipt
            && let Some(earlier) = claim(&mut transaction, settings, receipt, lasts).await?
        {
            transaction.rollback().await?;
            return Ok(earlier);
        }
        let code = self.random.digits::<6>();
        let hash = self.hash(&name, &code);
        if !replace(&mut transaction, settings, &name, &hash).await? {
            // The key stays unused.
            transaction.rollback().await?;
            return Ok(Issue::TooMany(self.until_next(settings, &name).await?));
        }
        transaction.commit().await?;
        if let Err(error) = self.sweep().await {
            tracing::warn!(%error, "Codes that have ended could not be deleted");
        }
        Ok(Issue::New(code))
    }

    /// Withdraws a code that could not be sent, and ends the receipt of its request, so that the
    /// same request is tried again.
    pub(super) async fn withdraw(
        &self,
        phone: &Phone,
        code: &str,
        receipt: Option<&Receipt>,
    ) -> Result<(), sqlx::Error> {
        let name = self.name(phone);
        let mut transaction = self.pool.begin().await?;
        // In the order of `issue`, which locks the receipt first.
        if let Some(receipt) = receipt {
            sqlx::query!(
                "DELETE FROM code_receipts WHERE receipt_key = $1 AND fingerprint = $2",
                receipt.key,
                receipt.fingerprint,
            )
            .execute(&mut *transaction)
            .await?;
        }
        sqlx::query!(
            "UPDATE one_time_codes SET tries_left = 0, sends = trim_array(sends, 1)
             WHERE phone = $1 AND code = $2 AND cardinality(sends) > 0",
            name,
            self.hash(&name, code),
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await
    }

    /// Tries a code. A right one is used up if `of_use`; a wrong one counts.
    pub(super) async fn try_code(
        &self,
        phone: &Phone,
        code: &str,
        of_use: bool,
        receipt: Option<&Receipt>,
    ) -> Result<Trial, sqlx::Error> {
        let name = self.name(phone);
        let request = receipt.map(|receipt| format!("{}/{}", receipt.key, receipt.fingerprint));
        let right = sqlx::query_scalar!(
            r#"
            UPDATE one_time_codes
            SET tries_left = CASE
                    WHEN code <> $2 THEN tries_left - 1
                    WHEN $3 THEN 0
                    ELSE tries_left
                END,
                used_by = CASE WHEN code = $2 AND $3 THEN $4 ELSE used_by END
            WHERE phone = $1 AND expires_at > now()
              -- The same request while the first is under way: it has used the code itself.
              AND (tries_left > 0 OR code = $2 AND used_by = $4)
            RETURNING code = $2 AS "right!"
            "#,
            name,
            self.hash(&name, code),
            of_use,
            request,
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(match right {
            Some(true) => Trial::Right,
            Some(false) | None => Trial::Wrong,
        })
    }

    async fn until_next(
        &self,
        settings: &AccountSettings,
        name: &str,
    ) -> Result<Duration, sqlx::Error> {
        let left = sqlx::query_scalar!(
            r#"
            SELECT extract(epoch FROM min(sent) + $2::interval - now())::double precision
            FROM one_time_codes, unnest(sends) AS sent
            WHERE phone = $1 AND sent > now() - $2::interval
            "#,
            name,
            interval(settings.code_sends_within),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(Duration::try_from_secs_f64(left.unwrap_or(0.0)).unwrap_or_default())
    }

    async fn sweep(&self) -> Result<(), sqlx::Error> {
        sqlx::query!(
            "DELETE FROM one_time_codes WHERE phone IN (
                 SELECT phone FROM one_time_codes WHERE ends_at <= now()
                 LIMIT $1 FOR UPDATE SKIP LOCKED
             )",
            SWEPT_AT_ONCE,
        )
        .execute(&self.pool)
        .await?;
        sqlx::query!(
            "DELETE FROM code_receipts WHERE receipt_key IN (
                 SELECT receipt_key FROM code_receipts WHERE ends_at <= now()
                 LIMIT $1 FOR UPDATE SKIP LOCKED
             )",
            SWEPT_AT_ONCE,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// The number as stored in the table.
    fn name(&self, phone: &Phone) -> String {
        let parts = &[phone.as_str().as_bytes()];
        self.keyring.keyed_hash("phone of a one-time code", parts)
    }

    /// A million codes are quickly tried; without the installation's key that does not help.
    fn hash(&self, name: &str, code: &str) -> String {
        let parts = &[name.as_bytes(), code.as_bytes()];
        self.keyring.keyed_hash("one-time code", parts)
    }
}

/// Claims a receipt's key for its request, unless an earlier one has it: then returns its outcome.
/// The same at the same moment waits here until the first one has ended.
async fn claim(
    rows: &mut PgConnection,
    settings: &AccountSettings,
    receipt: &Receipt,
    lasts: Duration,
) -> Result<Option<Issue>, sqlx::Error> {
    let claimed = sqlx::query_scalar!(
        r#"
        INSERT INTO code_receipts AS known (receipt_key, fingerprint, code_ends_at, ends_at)
        VALUES ($1, $2, now() + $3::interval, now() + $4::interval)
        ON CONFLICT (receipt_key) DO UPDATE
        SET fingerprint = excluded.fingerprint,
            code_ends_at = excluded.code_ends_at,
            ends_at = excluded.ends_at
        WHERE known.ends_at <= now()
        RETURNING 1 AS "claimed!"
        "#,
        receipt.key,
        receipt.fingerprint,
        interval(settings.code_life),
        interval(lasts),
    )
    .fetch_optional(&mut *rows)
    .await?;
    if claimed.is_some() {
        return Ok(None);
    }
    // Its row is locked by now: nothing ends it in between.
    let earlier = sqlx::query!(
        r#"
        SELECT fingerprint = $2 AS "same!",
               extract(epoch FROM code_ends_at - clock_timestamp())::double precision AS "left!"
        FROM code_receipts
        WHERE receipt_key = $1
        "#,
        receipt.key,
        receipt.fingerprint,
    )
    .fetch_one(rows)
    .await?;
    Ok(Some(if earlier.same {
        Issue::Repeat(Duration::try_from_secs_f64(earlier.left).unwrap_or_default())
    } else {
        Issue::OtherRequest
    }))
}

/// Replaces the code of a number; `false` if too many were created.
async fn replace(
    rows: &mut PgConnection,
    settings: &AccountSettings,
    name: &str,
    hash: &str,
) -> Result<bool, sqlx::Error> {
    let replaced = sqlx::query_scalar!(
        r#"
        INSERT INTO one_time_codes AS known (phone, code, tries_left, expires_at, sends, ends_at)
        VALUES ($1, $2, $3, now() + $4::interval, ARRAY[now()],
                now() + greatest($4::interval, $5::interval))
        ON CONFLICT (phone) DO UPDATE
        SET code = excluded.code,
            tries_left = excluded.tries_left,
            expires_at = excluded.expires_at,
            sends = array_append(
                ARRAY(SELECT sent FROM unnest(known.sends) AS sent WHERE sent > now() - $5::interval),
                now()
            ),
            ends_at = excluded.ends_at,
            -- Written by a process of an older version, for the previous code.
            receipt_key = NULL
        WHERE (SELECT count(*) FROM unnest(known.sends) AS sent
               WHERE sent > now() - $5::interval) < $6
        RETURNING 1 AS "replaced!"
        "#,
        name,
        hash,
        settings.code_tries,
        interval(settings.code_life),
        interval(settings.code_sends_within),
        i64::from(settings.code_sends),
    )
    .fetch_optional(rows)
    .await?;
    Ok(replaced.is_some())
}

fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}
