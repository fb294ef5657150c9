# ct5lp-hightpu-1t (v5e), topology 1x1: 1 chips at 1 a machine are 1 machine.
# This needs GKE 1.33.0-gke.1712000 or later. Google takes a flex-start machine away after 7 days at most.
# Name --chip-hour-price to see what it costs. Google's prices: https://cloud.google.com/products/dws/pricing

# 1. The node pool. It costs nothing until a Pod asks for it.
gcloud container node-pools create tpu-flex \
    --cluster=CLUSTER \
    --location=us-east5 \
    --node-locations=us-east5-a \
    --machine-type=ct5lp-hightpu-1t \
    --flex-start \
    --reservation-affinity=none \
    --enable-autoscaling \
    --num-nodes=0 \
    --min-nodes=0 \
    --max-nodes=1

# 2. Check it.
gcloud container node-pools describe tpu-flex --cluster=CLUSTER --location=us-east5 --format=json |
    pitstop flex check --topology 1x1 -
