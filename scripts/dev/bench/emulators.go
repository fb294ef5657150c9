package main

import (
	"context"
	"os"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"pitstop.internal/events"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/publish/publishtest"
)

// emulated publishes requests on a topic of Google's Pub/Sub emulator, as a function does on the service.
func emulated(ctx context.Context) (*publish.Publisher, error) {
	address, err := publishtest.Start(publishtest.PubSub)
	if err != nil {
		return nil, err
	}
	opts := publishtest.Options(address)
	topics, err := pubsub.NewTopicAdminClient(ctx, opts...)
	if err != nil {
		return nil, err
	}
	defer topics.Close() //nolint:errcheck // it was only used to make the topic
	topic, err := topics.CreateTopic(ctx, &pubsubpb.Topic{Name: "projects/bench/topics/" + events.TopicRecreate})
	if err != nil {
		return nil, err
	}
	return publish.New(publish.Topics{events.TypeRecreateRequested: topic.GetName()}, opts...), nil
}

// firestore has this process use Google's Firestore emulator.
func firestore() error {
	address, err := publishtest.Start(publishtest.Firestore)
	if err != nil {
		return err
	}
	return os.Setenv("FIRESTORE_EMULATOR_HOST", address)
}
