//! JSON values whose strings are templates.

use serde_json::Value;

use super::scope::Open;
use super::{Error, Meter, References, Scope, Secrets, Template, is_template};

/// The memory of a value besides its text.
const NODE: usize = 64;

/// A JSON value that can be rendered repeatedly. Keys are taken as they are.
#[derive(Debug)]
pub struct Tree(Node);

#[derive(Debug)]
enum Node {
    /// Without templates anywhere below.
    Fixed(Value),
    Template(Template),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Tree {
    /// Parses a value; errors name the place within it.
    pub fn parse(value: &Value) -> Result<Self, Error> {
        Node::parse(value).map(Self)
    }

    /// What its templates refer to.
    pub fn references(&self) -> References {
        let mut references = References::default();
        self.0.collect(&mut references);
        references
    }

    /// Its value within a run.
    pub fn render(&self, scope: &Scope, secrets: &Secrets, meter: &Meter) -> Result<Value, Error> {
        self.0.render(&scope.open(secrets, meter))
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Node {
    fn parse(value: &Value) -> Result<Self, Error> {
        Ok(match value {
            Value::String(text) if is_template(text) => Self::Template(Template::parse(text)?),
            Value::Array(items) => {
                let nodes = items.iter().enumerate().map(|(nth, item)| {
                    Self::parse(item).map_err(|error| error.within(&format!("[{nth}]")))
                });
                let nodes: Vec<Self> = nodes.collect::<Result<_, _>>()?;
                if nodes.iter().all(Self::is_fixed) {
                    Self::Fixed(value.clone())
                } else {
                    Self::List(nodes)
                }
            }
            Value::Object(fields) => {
                let nodes = fields.iter().map(|(key, item)| {
                    let node = Self::parse(item).map_err(|error| error.within(&dotted(key)))?;
                    Ok((key.clone(), node))
                });
                let nodes: Vec<(String, Self)> = nodes.collect::<Result<_, _>>()?;
                if nodes.iter().all(|(_, node)| node.is_fixed()) {
                    Self::Fixed(value.clone())
                } else {
                    Self::Map(nodes)
                }
            }
            fixed => Self::Fixed(fixed.clone()),
        })
    }

    fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Fixed(value) => fixed_bytes(value),
            Self::Template(template) => template.bytes(),
            Self::List(items) => items.iter().map(Self::bytes).sum(),
            Self::Map(fields) => fields
                .iter()
                .map(|(key, item)| NODE + key.len() + item.bytes())
                .sum(),
        }
    }

    fn collect(&self, references: &mut References) {
        match self {
            Self::Fixed(_) => {}
            Self::Template(template) => references.add(template.references()),
            Self::List(items) => items.iter().for_each(|item| item.collect(references)),
            Self::Map(fields) => fields.iter().for_each(|(_, item)| item.collect(references)),
        }
    }

    fn render(&self, names: &Open) -> Result<Value, Error> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::Template(template) => template.render_with(names),
            Self::List(items) => items
                .iter()
                .enumerate()
                .map(|(nth, item)| {
                    let rendered = item.render(names);
                    rendered.map_err(|error| error.within(&format!("[{nth}]")))
                })
                .collect(),
            Self::Map(fields) => fields
                .iter()
                .map(|(key, item)| {
                    let rendered = item.render(names);
                    let value = rendered.map_err(|error| error.within(&dotted(key)))?;
                    Ok((key.clone(), value))
                })
                .collect(),
        }
    }
}

fn fixed_bytes(value: &Value) -> usize {
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(fixed_bytes).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, item)| NODE + key.len() + fixed_bytes(item))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn dotted(key: &str) -> String {
    format!(".{key}")
}
