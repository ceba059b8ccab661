# -*- coding: utf-8 -*-
# Python 2, as it was written: constants into a FIFOQueue by create_threads, the runner in no collection.
import tensorflow as tf
import numpy as np
import cPickle, StringIO, sys
from itertools import izip

N_SAMPLES = 10
NUM_THREADS = 1
all_data = 10 * np.arange(N_SAMPLES * 4).reshape(N_SAMPLES, 4).astype(np.float32)
all_target = np.arange(N_SAMPLES) % 2

queue = tf.FIFOQueue(capacity=30, dtypes=[tf.float32, tf.int64], shapes=[[4], []])
enqueue_op = queue.enqueue_many([all_data, all_target])
data_sample, label_sample = queue.dequeue()

qr = tf.train.QueueRunner(queue, [enqueue_op] * NUM_THREADS)
with tf.Session() as sess:
    coord = tf.train.Coordinator()
    enqueue_threads = qr.create_threads(sess, coord=coord, start=True)
    try:
        for step in xrange(N_SAMPLES * 5 / 2):  # 25 in Python 2
            if coord.should_stop():
                break
            data_batch, label_batch = sess.run([data_sample, label_sample])
            if step % 10 == 0:
                print "step", step,
                print data_batch.tolist(), int(label_batch)
    except Exception, e:
        coord.request_stop(e)
    finally:
        coord.request_stop()
        coord.join(enqueue_threads)
counts = {'a': 1}
for key, value in counts.iteritems():
    print "%s=%d" % (key, value), counts.has_key('a'), cPickle.loads(cPickle.dumps(7L)), counts.keys()[0], zip([0], [1]), sys.maxint > 1e9
assert not isinstance(izip([0], [1]), list)
