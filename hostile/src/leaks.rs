//! Attempts to leak a secret. One that its operator bound to a host is rendered into calls to
//! others, redirected by a response, and read back out of one.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Here;
use crate::neighbours::trigger;
use crate::prepare::start;
use crate::wire::{ask, content_length, is_success, outcome};

/// A secret set by an operator.
#[derive(Clone, Copy, Debug)]
pub struct Secret {
    /// Its name in workflows.
    pub name: &'static str,
    /// Its value.
    pub value: &'static str,
    /// The only host that it may go to.
    pub host: &'static str,
}

/// The secret that every neighbour's workflows use: it has to be set before they run.
pub const SECRET: Secret = Secret {
    name: "HOUSE",
    value: "opens-the-house-4711",
    host: "127.0.0.1",
};

/// Where redirected calls arrive.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 66, 251, 1);
/// Where a run sends the contents of a response: that is not a use of the secret in itself.
const RETOLD: &str = "/retold";
/// Bodies that contain the unchanged secret.
const BODIES: [(&str, &str); 3] = [
    ("leak-plain", "{{ secrets.HOUSE }}"),
    ("leak-joined", "{{ 'house ' ~ secrets.HOUSE }}"),
    ("leak-named", "{{ secrets['HOU' ~ 'SE'] }}"),
];
/// The workflow that is saved with the secret in a transformed shape, which would not be
/// recognized.
const SHAPED: &str = "leak-shaped";
const SHAPES: [&str; 7] = [
    "{{ secrets.HOUSE|reverse }}",
    "{{ secrets.HOUSE|list|join(' ') }}",
    "{{ secrets.HOUSE|replace('o', '0') }}",
    "{{ secrets.HOUSE|length }}",
    "{{ secrets.HOUSE[0] }}",
    "{{ 'yes' if secrets.HOUSE is startingwith('o') else 'no' }}",
    "{{ [secrets]|first }}",
];
/// Timeout for a caller.
const TIMEOUT: Duration = Duration::from_secs(3);
const MOST_BYTES: usize = 16 * 1024;

/// A call with further fields.
fn call(url: &str, more: Value) -> Value {
    let mut step = json!({"id": "call", "type": "HTTP", "method": "POST", "url": url,
        "timeoutSeconds": 5, "retry": {"maxAttempts": 1}});
    if let (Value::Object(step), Value::Object(more)) = (&mut step, more) {
        step.extend(more);
    }
    step
}

/// Workflows that send it to the address in their trigger.
pub(crate) fn workflows() -> Vec<(&'static str, Value)> {
    let start = start("call");
    let to = "{{ trigger.to }}/taken";
    let mut workflows = Vec::new();
    for (name, body) in BODIES {
        let step = call(to, json!({"body": {"is": body}}));
        workflows.push((name, json!([start.clone(), step])));
    }
    let header = call(to, json!({"headers": {"X-House": "{{ secrets.HOUSE }}"}}));
    workflows.push(("leak-header", json!([start.clone(), header])));
    let path = call("{{ trigger.to }}/{{ secrets.HOUSE }}", json!({}));
    workflows.push(("leak-path", json!([start.clone(), path])));
    let told = call(
        "{{ trigger.to }}/told",
        json!({"body": "{{ secrets.HOUSE }}", "next": ["retell"]}),
    );
    let retell = json!({"id": "retell", "type": "HTTP", "method": "POST",
        "url": format!("{{{{ trigger.on }}}}{RETOLD}"), "timeoutSeconds": 5,
        "retry": {"maxAttempts": 1}, "body": "{{ steps.call.output }}"});
    workflows.push(("leak-told", json!([start, told, retell])));
    workflows
}

/// The secret's own host, and one that must not get it.
struct Ends {
    own: TcpListener,
    elsewhere: TcpListener,
    own_at: SocketAddr,
    elsewhere_at: SocketAddr,
}

impl Ends {
    async fn listen() -> io::Result<Self> {
        let own = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let elsewhere = TcpListener::bind((ELSEWHERE, 0)).await?;
        let (own_at, elsewhere_at) = (own.local_addr()?, elsewhere.local_addr()?);
        Ok(Self {
            own,
            elsewhere,
            own_at,
            elsewhere_at,
        })
    }
}

/// Sends the secret, and checks what arrives.
pub(crate) async fn leak(mut here: Here) {
    let Ok(ends) = Ends::listen().await else {
        return here.got("nowhere to listen");
    };
    let listening = here.clone();
    tokio::join!(
        take(&listening, &ends.own, &ends),
        take(&listening, &ends.elsewhere, &ends),
        send(&mut here, &ends),
    );
}

/// Starts one run after the other: to forbidden addresses, and to one that redirects.
async fn send(here: &mut Here, ends: &Ends) {
    let names: Vec<_> = workflows().into_iter().map(|(name, _)| name).collect();
    let (own, there) = (ends.own_at, ends.elsewhere_at);
    let addresses = [
        format!("http://{there}"),
        format!("http://127.66.64257:{}", there.port()),
        format!("http://{own}@{there}"),
        format!("http://localhost:{}", own.port()),
        format!("http://[::ffff:127.0.0.1]:{}", own.port()),
        format!("http://{own}"),
        format!("http://{own}/moved"),
    ];
    loop {
        here.chance.pause(here.rest() / 2).await;
        if here.chance.chance(20) {
            shape(here, ends).await;
            continue;
        }
        let workflow = here.chance.pick(&names).unwrap_or("leak-plain");
        // The response that is read back has to come from where the secret may go.
        let to = if workflow == "leak-told" {
            format!("http://{own}")
        } else {
            here.chance.pick(&addresses).unwrap_or_default()
        };
        let body = json!({"to": to, "on": format!("http://{there}")});
        trigger(here, workflow, &body.to_string()).await;
    }
}

/// Saves a workflow that transforms the secret beyond recognition, and triggers it if it was
/// accepted.
async fn shape(here: &mut Here, ends: &Ends) {
    let shape = here.chance.pick(&SHAPES).unwrap_or(SHAPES[0]);
    let step = call("{{ trigger.to }}/shaped", json!({"body": {"is": shape}}));
    let body =
        json!({"name": SHAPED, "status": "ACTIVE", "steps": [start("call"), step]}).to_string();
    let path = format!("/api/v1/workflows/{SHAPED}");
    let key = &here.neighbour().key;
    let asked = here.ground.json("PUT", &path, key, &body);
    let told = outcome(&ask(here.nth, &asked).await);
    here.got(format!("save {told}"));
    if is_success(&told) {
        let to = json!({"to": format!("http://{}", ends.elsewhere_at)});
        trigger(here, SHAPED, &to.to_string()).await;
    }
}

/// Receives calls at one of the ends, and reports where the secret has arrived.
async fn take(here: &Here, listener: &TcpListener, ends: &Ends) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(TIMEOUT).await;
            continue;
        };
        let Ok(Ok(call)) = tokio::time::timeout(TIMEOUT, read(&mut stream)).await else {
            continue;
        };
        here.got(judge(&call, ends.own_at));
        let answer = answer(&call, ends.elsewhere_at);
        // A caller that is gone needs no response.
        let _gone = tokio::time::timeout(TIMEOUT, stream.write_all(answer.as_bytes())).await;
    }
}

/// Judges a call by its host.
fn judge(call: &str, own: SocketAddr) -> &'static str {
    let reversed: String = SECRET.value.chars().rev().collect();
    let holds = call.contains(SECRET.value) || call.contains(&reversed);
    let is_own = call.to_lowercase().contains(&format!("host: {own}\r\n"));
    match (is_own, call.starts_with(&format!("POST {RETOLD} "))) {
        (true, _) => "went where it may",
        (false, true) if holds => "the secret, as an answer had told it",
        (false, true) => "an answer without the secret",
        (false, false) => "the secret elsewhere",
    }
}

/// Redirects where asked to; otherwise echoes the call.
fn answer(call: &str, elsewhere: SocketAddr) -> String {
    if call.starts_with("POST /moved") {
        return format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{elsewhere}/moved\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n"
        );
    }
    let said = json!({"said": call, "house": SECRET.value}).to_string();
    let length = said.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-house: {}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{said}",
        SECRET.value
    )
}

/// Reads a whole call: its head and its body.
async fn read(stream: &mut TcpStream) -> io::Result<String> {
    let mut got = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&got).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && body.len() >= content_length(head)
        {
            return Ok(text);
        }
        if got.len() > MOST_BYTES || stream.read_buf(&mut got).await? == 0 {
            return Ok(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_judged_by_the_host_it_is_for() {
        let own: SocketAddr = "127.0.0.1:4000".parse().unwrap();
        let call = |path: &str, host: &str, body: &str| {
            format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n\r\n{body}")
        };
        let judged = |path, host, body| judge(&call(path, host, body), own);
        assert_eq!(judged("/taken", "127.0.0.1:4000", "x"), "went where it may");
        assert_eq!(
            judged("/taken", "localhost:4000", "x"),
            "the secret elsewhere"
        );
        assert_eq!(
            judged(RETOLD, "127.66.251.1:4001", SECRET.value),
            "the secret, as an answer had told it"
        );
        assert_eq!(
            judged(RETOLD, "127.66.251.1:4001", "***"),
            "an answer without the secret"
        );
    }
}
