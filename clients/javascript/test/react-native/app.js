// Runs as a React Native app would: its globals come from React Native alone.
import "react-native/Libraries/Core/setUpXHR";
import RCTDeviceEventEmitter from "react-native/Libraries/EventEmitter/RCTDeviceEventEmitter";
import * as client from "../../dist/index.js";

globalThis.deviceEvents = RCTDeviceEventEmitter;
globalThis.client = client;
