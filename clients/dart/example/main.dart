// Triggers a workflow of the demo and follows its run.
//
//   dart run example/main.dart http://127.0.0.1:8080 wp_…
import 'package:http/http.dart' as http;
import 'package:waypost/waypost.dart';

Future<void> main(List<String> arguments) async {
  final client = http.Client();
  final waypost = Waypost.withKey(arguments[1], Settings(url: arguments[0], client: client));
  final items = waypost.subscribe('runs');
  final done = items.firstWhere((item) => item is LiveEvent && item.type == 'run.succeeded');
  final run = await waypost.workflows.trigger('say-hello', payload: {'name': 'Ada'});
  print('started ${run['runId']}');
  await done;
  print((await waypost.runs.get(run['runId']! as String))['state']);
  client.close();
}
