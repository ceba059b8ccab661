"""Small programs that go wrong, or are unusual, for `tests.compat.test_script`."""

from __future__ import annotations

RECORDS = """
import os, sys
import tensorflow as tf
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numbers.csv")
with open(path, "w") as f:
    f.write("".join("%d\\n" % n for n in range(20)))

def inputs(paths, epochs=1):
    queue = tf.train.string_input_producer(paths, num_epochs=epochs, shuffle=False)
    _, line = tf.TextLineReader().read(queue)
    return tf.train.batch(tf.decode_csv(line, [[0]]), 4)

def loop(batch, init=True):
    with tf.Session() as sess:
        if init:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        steps = 0
        try:
            while not coord.should_stop():
                sess.run(batch)
                steps += 1
        except tf.errors.OutOfRangeError:
            print("the end")
        finally:
            coord.request_stop()
        coord.join(threads)
    return steps
"""

SCRIPTS = {
    "exits": "import sys\nimport tensorflow as tf\nprint('said')\nsys.exit(3)\n",
    "exits_with_words": "import sys\nimport tensorflow as tf\nsys.exit('not today')\n",
    "raises": "import tensorflow as tf\ndef deep():\n    raise KeyError('mine')\ndeep()\n",
    "raises_in_a_step": "import tensorflow as tf\nq = tf.placeholder(tf.float32, [2])\nx = q * tf.ones([2])\n"
    "with tf.Session() as sess:\n    sess.run(x)\n",
    "raises_in_a_thread": "import threading\nimport tensorflow as tf\nx = tf.placeholder(tf.int32, [])\n"
    "sess = tf.Session()\nthread = threading.Thread(target=lambda: sess.run(x + 1), name='Mine')\n"
    "thread.start()\nthread.join()\n",
    "interrupted": "import tensorflow as tf\nraise KeyboardInterrupt\n",
    "gone": "import tensorflow as tf\n\ndef load():\n    return tf.contrib.ffmpeg.decode_audio\n\nload()\n",
    "gone_import": "import tensorflow as tf\nfrom tensorflow.contrib.ffmpeg import decode_audio\n",
    "gone_is_asked": "import tensorflow as tf\nprint(hasattr(tf.contrib.ffmpeg, 'decode_audio'), hasattr(tf, 'pack'))\n"
    "try:\n    from tensorflow.contrib.ffmpeg import decode_audio\nexcept ImportError:\n    print('no')\n",
    "custom_op": "import tensorflow as tf\nmodule = tf.load_op_library('./zero_out.so')\n",
    "tf2": "import tensorflow as tf\n@tf.function\ndef f(x):\n    return x\nprint(f(1))\n",
    "syntax": "import tensorflow as tf\nx = = 3\n",
    "old_by_hand": "import tensorflow as tf\n\ndef f(a, (b, c)):\n    print a\n",
    "mixed_tabs": "import tensorflow as tf\nif True:\n\tx = tf.zeros([6, 7])\n"
    "        print x.get_shape()[1] / 2, 7 / 2\n",
    "divides_a_dimension": "import tensorflow as tf\nshape = tf.zeros([6, 7]).get_shape()\n"
    "print(shape[1] / 2, 20 / shape[0], shape.as_list()[1] / 2)\n",
    "moved_names": "import tensorflow as tf\nfrom tensorflow.python.framework import ops\n"
    "from tensorflow.python.ops import array_ops, control_flow_ops\n"
    "from tensorflow.python.ops.array_ops import unstack\n"
    "x = control_flow_ops.cond(tf.constant(True), lambda: array_ops.stack([1, 2]), lambda: array_ops.stack([3, 4]))\n"
    "print(isinstance(x, ops.Tensor), sum(tf.Session().run(unstack(x, 2))))\n",
    "model_of_the_how_tos": "import tensorflow as tf\nfrom tensorflow.g3doc.tutorials.mnist import mnist as old\n"
    "from tensorflow.examples.tutorials.mnist import mnist\n"
    "import tensorflow.examples.tutorials.mnist.mnist as again\nprint(old is mnist, again.NUM_CLASSES)\n"
    "logits = mnist.inference(tf.ones([3, mnist.IMAGE_PIXELS]), 5, 4)\nloss = mnist.loss(logits, [1, 1, 1])\n"
    "step = mnist.training(loss, 0.1)\nright = mnist.evaluation(logits, [1, 1, 1])\n"
    "print([v.op.name for v in tf.global_variables()])\nwith tf.Session() as sess:\n"
    "    sess.run(tf.global_variables_initializer())\n    before = sess.run(loss)\n"
    "    for _ in range(20):\n        sess.run(step)\n"
    "    print(sess.run(loss) < before, sess.run(right), sess.run(tf.train.get_global_step()))\n",
    "flags_of_1_4": "import tensorflow as tf\nflags = tf.app.flags\nflags.DEFINE_string('log_dir', './log', 'where')\n"
    "flags.DEFINE_boolean('batch_size', 128, 'how many')\nflags.DEFINE_boolean('epoch', 1, 'how many')\n"
    "flags.DEFINE_integer('steps', '5', 'how many')\nF = flags.FLAGS\ndef main(_):\n"
    "    print(F.log_dir, F.batch_size, F.epoch * 3, F.steps)\n"
    "    print(tf.image.random_crop(tf.zeros([9, 8, 3]), [4, 5]).shape)\ntf.app.run()\n",
    "library_of_3_6": "import collections, time\nfrom collections import Iterable, OrderedDict\n"
    "import tensorflow as tf\n"
    "class Options(collections.Mapping):\n    __getitem__ = __iter__ = __len__ = None\nbegan = time.clock()\n"
    "keys = {1: 2, 3: 4}.keys() & {3}\n"
    "print(issubclass(Options, Iterable), time.clock() >= began, 7 / 2, keys, OrderedDict.__name__)\n",
    "missing_file": RECORDS + "loop(inputs([path, '/no/such.csv']))\n",
    "never_read": RECORDS
    + "batch = inputs([path])\nx = tf.constant(3)\nwith tf.Session() as sess:\n"
    + "    sess.run(tf.local_variables_initializer())\n    coord = tf.train.Coordinator()\n"
    + "    threads = tf.train.start_queue_runners(sess, coord)\n    print(sess.run(x))\n"
    + "    coord.request_stop()\n    coord.join(threads)\n",
    "not_started": RECORDS
    + "batch = inputs([path])\nwith tf.Session() as sess:\n    sess.run(tf.local_variables_initializer())\n"
    + "    sess.run(batch)\n",
    "forgets_locals": RECORDS + "print(loop(inputs([path]), init=False))\n",
    "without_coordinator": RECORDS
    + "batch = inputs([path, '/no/such.csv'])\nwith tf.Session() as sess:\n"
    + "    sess.run(tf.local_variables_initializer())\n    threads = tf.train.start_queue_runners(sess)\n"
    + "    for _ in range(10):\n        sess.run(batch)\n",
    "endless": RECORDS + "print('after', loop(inputs([path], None)))\n",
    "endless_for": RECORDS
    + "batch = inputs([path], None)\nwith tf.Session() as sess:\n    tf.train.start_queue_runners(sess)\n"
    + "    for step in range(100000):\n        print(step, sess.run(batch).tolist())\n",
    "fed_by_threads": """
import threading
import tensorflow as tf
place = tf.placeholder(tf.float32, [])
queue = tf.FIFOQueue(10, tf.float32, [[]])
enqueue = queue.enqueue(place)
batch = queue.dequeue_many(3)

def feed(sess):
    try:
        for n in range(9):
            sess.run(enqueue, {place: n})
        sess.run(queue.close())
    except tf.errors.CancelledError:
        pass

with tf.Session() as sess:
    thread = threading.Thread(target=feed, args=(sess,))
    thread.start()
    thread.join()  # a step that waits while a queue is closed is, if seldom, not woken by TensorFlow
    try:
        while True:
            print(sess.run(batch).tolist())
    except tf.errors.OutOfRangeError:
        print('end')
""",
    "spawns": "import multiprocessing, sys\nimport tensorflow as tf\nfrom helper_of_main import double\n"
    "def work(n):\n    return tf.contrib.slim.__name__, double(n), sys.argv[1:], tf.executing_eagerly()\n"
    "if __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
    "        print(pool.map(work, [3]))\n",
    "imports": """
import importlib, importlib.util
import tensorflow as tf
import tensorflow.compat.v1 as migrated
from tensorflow.compat import v1
import tensorflow.python.framework.ops as private
from tensorflow.python.platform import gfile
from tensorflow.contrib.layers import xavier_initializer
from tensorflow.core.framework import graph_pb2
assert importlib.import_module('tensorflow').Session is tf.Session is migrated.Session is v1.Session
assert importlib.import_module('json').dumps(1) == '1' and importlib.util.find_spec('json')
assert private.Graph is tf.Graph and __import__('tensorflow') is tf
import tensorflow.models.rnn
""",
    "methods_only": "import tensorflow as tf\nx = {1: 2}\nprint(list(x.iteritems()), 3 / 2)\n",
    "looks_up": """
import tensorflow as tf
words = tf.constant(["a", "b", "c", "d"])
table = tf.contrib.lookup.index_table_from_tensor(words, default_value=-1)
word = tf.train.slice_input_producer([words], shuffle=False)[0]
batch = tf.train.batch([table.lookup(word)], 2)
init = tf.group(tf.global_variables_initializer(), tf.tables_initializer())
with tf.Session() as sess:
    sess.run(init)
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    print([sess.run(batch).tolist() for _ in range(3)])
    coord.request_stop()
    coord.join(threads)
""",
    "grows": """
import tensorflow as tf
queue = tf.train.range_input_producer(6, shuffle=False)
batch = tf.train.batch([queue.dequeue()], 2)
sess = tf.InteractiveSession()
x = tf.Variable(3)
sess.run(x.initializer)  # before the rest of the graph is there
rows = batch * x
both = tf.stack([rows, batch])
coord = tf.train.Coordinator()
threads = tf.train.start_queue_runners(coord=coord)
print(rows.eval().tolist(), both.eval().tolist(), batch.eval().tolist(), end=' ')
got = sess.run({'a': [batch, x], 'b': 'batch:0'})
print(got['a'][0].tolist(), got['a'][1], got['b'].tolist())
coord.request_stop()
coord.join(threads)
""",
    "main": """
import os, pickle, sys, warnings
from helper_of_main import double, shape
import tensorflow as tf
from tensorflow import flags
from tensorflow.python.framework import ops
import tensorflow.contrib.slim as slim

class Thing(object):
    pass

assert sys.modules['__main__'].Thing is Thing and pickle.loads(pickle.dumps(Thing())).__class__ is Thing
assert __name__ == '__main__' and sys.path[0] == os.path.dirname(os.path.abspath(__file__))
flags.DEFINE_integer('number', 1, 'A number.')
warnings.warn('of the program')
print(sys.argv[1:], flags.FLAGS.number if flags.FLAGS(sys.argv) else None, double(4), shape, slim.__name__)
assert ops.Graph is tf.Graph
""",
}

SCRIPTS.update(
    joins_in_finally=RECORDS
    + "batch = inputs([path, '/no/such.csv'])\nwith tf.Session() as sess:\n"
    + "    sess.run(tf.local_variables_initializer())\n    coord = tf.train.Coordinator()\n"
    + "    threads = tf.train.start_queue_runners(sess, coord)\n    try:\n        while not coord.should_stop():\n"
    + "            sess.run(batch)\n    except tf.errors.OutOfRangeError:\n        print('the end')\n"
    + "    finally:\n        coord.request_stop()\n        coord.join(threads)\n",
    callables="""
import tensorflow as tf
batch = tf.train.batch([tf.train.range_input_producer(9, shuffle=False).dequeue()], 2)
factor = tf.placeholder(tf.int32, [])
with tf.Session() as sess:
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    plain, fed = sess.make_callable(batch), sess.make_callable(batch * factor, [factor])
    op = sess.make_callable(batch.op, accept_options=True)
    for _ in range(2):
        print(plain().tolist(), fed(10).tolist(), op(options=tf.RunOptions()))
    coord.request_stop()
    coord.join(threads)
""",
    dequeues_in_the_loop="""
import tensorflow as tf
names = tf.train.string_input_producer(["a", "b", "c"], shuffle=False)
with tf.Session() as sess:
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    for _ in range(4):
        print(sess.run(names.dequeue()))
    coord.request_stop()
    coord.join(threads)
""",
    two_phases="""
import tensorflow as tf
def loop(first):
    number = tf.train.range_input_producer(9, shuffle=False).dequeue()
    batch = tf.train.batch([number + first], 3)
    with tf.Session() as sess:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        print([sess.run(batch).tolist() for _ in range(2)])
        coord.request_stop()
        coord.join(threads)
loop(0)
loop(100)
""",
    later_pipeline="""
import tensorflow as tf
def numbers(first):
    return tf.train.batch([tf.train.range_input_producer(9, shuffle=False).dequeue() + first], 3)
sess = tf.InteractiveSession()
coord = tf.train.Coordinator()
one = numbers(0)
threads = tf.train.start_queue_runners(coord=coord)
print(one.eval().tolist())
two = numbers(100)
threads += tf.train.start_queue_runners(coord=coord)
print(two.eval().tolist(), one.eval().tolist())
coord.request_stop()
coord.join(threads)
""",
    chooses_queues="""
import tensorflow as tf
queues = []
for first in (0, 100):
    queue = tf.FIFOQueue(9, tf.int32, [[]])
    number = tf.train.range_input_producer(9, shuffle=False).dequeue() + first
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(number)]))
    queues.append(queue)
which = tf.placeholder(tf.int32, [])
batch = tf.QueueBase.from_list(which, queues).dequeue_many(3)
with tf.Session() as sess:
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    print([sess.run(batch, {which: n % 2}).tolist() for n in range(4)])
    coord.request_stop()
    coord.join(threads)
""",
    other_size_later="""
import tensorflow as tf
queue = tf.FIFOQueue(9, tf.int32, [[]])
number = tf.train.range_input_producer(9, shuffle=False).dequeue()
tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(number)]))
two = queue.dequeue_many(2)
with tf.Session() as sess:
    tf.train.start_queue_runners(sess)
    print(sess.run(two).tolist())
    print(sess.run(queue.dequeue_many(3)).tolist())
""",
    in_parts="""
import tensorflow as tf
batch = tf.train.batch([tf.train.range_input_producer(9, shuffle=False).dequeue()], 2)
factor = tf.placeholder(tf.int32, [])
more = batch * factor
with tf.Session() as sess:
    tf.train.start_queue_runners(sess)
    handle = sess.partial_run_setup([batch, more], [factor])
    found = sess.partial_run(handle, batch)
    print(found.tolist(), sess.partial_run(handle, more, {factor: 10}).tolist())
""",
    feeds_for_ever="""
import threading
import tensorflow as tf
place = tf.placeholder(tf.float32, [])
queue = tf.FIFOQueue(4, tf.float32, [[]])
enqueue, total = queue.enqueue(place), tf.reduce_sum(queue.dequeue_many(3))
sess = tf.Session()
def feed():
    number = 0
    while True:
        sess.run(enqueue, {place: number})
        number += 1
thread = threading.Thread(target=feed)
thread.daemon = True
thread.start()
print([float(sess.run(total)) for _ in range(5)])
""",
    trains_in_threads="""
import threading
import tensorflow as tf
batch = tf.train.batch([tf.train.range_input_producer(600, num_epochs=1, shuffle=False).dequeue()], 3)
sess = tf.Session()
sess.run(tf.local_variables_initializer())
seen, main_ends, lock = [], threading.Event(), threading.Lock()
left = [3]
def train():
    main_ends.wait()
    with tf.train.Coordinator().stop_on_exception():
        while True:
            seen.extend(sess.run(batch).tolist())
    with lock:
        left[0] -= 1
        if not left[0]:
            print(sorted(seen) == list(range(600)))
tf.train.start_queue_runners(sess)
threads = [threading.Thread(target=train) for _ in range(3)]
for thread in threads:
    thread.start()
main_ends.set()
""",
    idles_in_threads="""
import concurrent.futures, threading
import tensorflow as tf
pool = concurrent.futures.ThreadPoolExecutor(2)
print(pool.submit(lambda: 7).result())
place = tf.placeholder(tf.float32, [])
queue = tf.FIFOQueue(4, tf.float32, [[]])
enqueue, total = queue.enqueue(place), tf.reduce_sum(queue.dequeue_many(3))
sess = tf.Session()
def feed():
    number = 0
    while True:
        sess.run(enqueue, {place: number})
        number += 1
threading.Thread(target=feed).start()
print(float(sess.run(total)))
""",
    left_behind="""
import sys, threading, types
import tensorflow as tf
shared = sys.modules["shared_by_tests"] = types.ModuleType("shared_by_tests")
shared.go = threading.Event()
def late():
    shared.go.wait()
    raise ValueError("too late")
shared.thread = threading.Thread(target=late, daemon=True)
shared.thread.start()
print("left")
""",
    lets_go="""
import shared_by_tests
import tensorflow as tf
shared_by_tests.go.set()
shared_by_tests.thread.join()
print("gone on")
""",
    steps_beside=RECORDS
    + """
slim = tf.contrib.slim
_, line = slim.parallel_reader.parallel_read(
    [path] * 2, tf.TextLineReader, num_readers=4, shuffle=False, capacity=6, min_after_dequeue=0)
batch = tf.train.batch([tf.reshape(line, [])], 2, num_threads=2, capacity=4)
sv = tf.train.Supervisor(logdir=None, summary_op=None)
with sv.managed_session(start_standard_services=False) as sess:
    sv.loop(0.001, lambda: sess.run(batch))
    threads = sv.start_queue_runners(sess)
    for _ in range(60):
        sess.run(batch)
    sv.stop(threads)
print("done")
""",
    runner_of_its_own="""
import threading
import numpy as np
import tensorflow as tf

class FeedingRunner(tf.train.QueueRunner):
    def _run(self, sess, enqueue_op, coord=None):
        coord.register_thread(threading.current_thread())
        try:
            while not coord.should_stop():
                number = sess.run(source)
                sess.run(enqueue_op, {place: [number, number * number]})
        except tf.errors.CancelledError:
            pass

source = tf.train.slice_input_producer([np.arange(6, dtype=np.int32)], shuffle=False)[0]
place = tf.placeholder(tf.float32, [2])
queue = tf.FIFOQueue(8, [tf.float32], [[2]])
tf.train.add_queue_runner(FeedingRunner(queue, [queue.enqueue([place])]))
batch = tf.train.batch([queue.dequeue()], 2)
with tf.Session() as sess:
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    for _ in range(4):
        print(sess.run(batch)[:, 1].tolist())
    coord.request_stop()
    coord.join(threads)
""",
    tf2_in_part="import tensorflow as tf\nfor batch in tf.data.Dataset.range(5).batch(2):\n    print(batch)\n",
)

HELPER = "import tensorflow as tf\nshape = tf.zeros([2, 3]).shape[1].value\ndef double(x):\n    return 2 * x\n"
