"""Image and mask paths in step: slice_input_producer -> read_file -> decode -> the same random scale and crop of both."""
import argparse
import os

import tensorflow as tf

IMG_MEAN = [104.0, 116.0, 122.0]


def get_arguments():
    parser = argparse.ArgumentParser(description="Segmentation")
    parser.add_argument("--data-list", type=str, default="train.txt")
    parser.add_argument("--data-dir", type=str, default=".")
    parser.add_argument("--num-steps", type=int, default=6)
    return parser.parse_args()


def read_labeled_image_list(data_dir, data_list):
    images, masks = [], []
    with open(data_list, "r") as f:
        for line in f:
            image, mask = line.strip("\n").split(" ")
            images.append(os.path.join(data_dir, image))
            masks.append(os.path.join(data_dir, mask))
    return images, masks


class ImageReader(object):
    def __init__(self, data_dir, data_list, input_size, random_scale, coord):
        self.coord = coord
        self.image_list, self.label_list = read_labeled_image_list(data_dir, data_list)
        images = tf.convert_to_tensor(self.image_list, dtype=tf.string)
        labels = tf.convert_to_tensor(self.label_list, dtype=tf.string)
        self.queue = tf.train.slice_input_producer([images, labels], shuffle=False)
        img = tf.image.decode_jpeg(tf.read_file(self.queue[0]), channels=3)
        r, g, b = tf.split(axis=2, num_or_size_splits=3, value=img)
        img = tf.cast(tf.concat(axis=2, values=[b, g, r]), dtype=tf.float32)
        img -= IMG_MEAN
        label = tf.image.decode_png(tf.read_file(self.queue[1]), channels=1)
        if random_scale:
            scale = tf.random_uniform([1], minval=1.0, maxval=1.0, dtype=tf.float32)
            h_new = tf.to_int32(tf.multiply(tf.to_float(tf.shape(img)[0]), scale))
            w_new = tf.to_int32(tf.multiply(tf.to_float(tf.shape(img)[1]), scale))
            new_shape = tf.squeeze(tf.stack([h_new, w_new]), squeeze_dims=[1])
            img = tf.image.resize_images(img, new_shape)
            label = tf.image.resize_nearest_neighbor(tf.expand_dims(label, 0), new_shape)
            label = tf.squeeze(label, squeeze_dims=[0])
        img.set_shape((None, None, 3))
        self.image = tf.image.resize_image_with_crop_or_pad(img, *input_size)
        self.label = tf.image.resize_image_with_crop_or_pad(label, *input_size)

    def dequeue(self, num_elements):
        return tf.train.batch([self.image, self.label], num_elements)


def main():
    args = get_arguments()
    coord = tf.train.Coordinator()
    tf.set_random_seed(1234)
    with tf.name_scope("create_inputs"):
        reader = ImageReader(args.data_dir, args.data_list, (8, 8), True, coord)
        image_batch, label_batch = reader.dequeue(3)
    net = tf.layers.conv2d(image_batch, 2, 3, padding="same")
    loss = tf.reduce_mean(tf.square(net)) / 1000.0 + tf.reduce_mean(tf.cast(label_batch, tf.float32))
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    config = tf.ConfigProto()
    config.gpu_options.allow_growth = True
    sess = tf.Session(config=config)
    sess.run(tf.global_variables_initializer())
    threads = tf.train.start_queue_runners(coord=coord, sess=sess)
    for step in range(args.num_steps):
        loss_value, labels, _ = sess.run([loss, label_batch, train_op])
        print("step {:d} \t loss = {:.5f} masks {}".format(step, loss_value, labels[:, 0, 0, 0].tolist()))
    coord.request_stop()
    coord.join(threads)


if __name__ == "__main__":
    main()
