mod examples;
mod given;
mod properties;
