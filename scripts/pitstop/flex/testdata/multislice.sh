# ct5lp-hightpu-4t (v5e), topology 4x8: 32 chips at 4 a machine are 8 machines.
# 2 slices train together, each in a node pool of its own: 16 machines in all.
# This needs GKE 1.33.0-gke.1712000 or later. Google takes a flex-start machine away after 7 days at most.
# Name --chip-hour-price to see what it costs. Google's prices: https://cloud.google.com/products/dws/pricing
# Autopilot makes the machines itself and refuses privileged containers: there leave out 1, 2, privileged: true, and the node pool in 5.

# 1. The node pool. It costs nothing until a Pod asks for it.
gcloud container node-pools create tpu-flex-0 \
    --cluster=CLUSTER \
    --location=us-east5 \
    --node-locations=us-east5-a \
    --machine-type=ct5lp-hightpu-4t \
    --tpu-topology=4x8 \
    --flex-start \
    --reservation-affinity=none \
    --enable-autoscaling \
    --num-nodes=0 \
    --min-nodes=0 \
    --max-nodes=8 \
    --no-enable-autorepair
gcloud container node-pools create tpu-flex-1 \
    --cluster=CLUSTER \
    --location=us-east5 \
    --node-locations=us-east5-a \
    --machine-type=ct5lp-hightpu-4t \
    --tpu-topology=4x8 \
    --flex-start \
    --reservation-affinity=none \
    --enable-autoscaling \
    --num-nodes=0 \
    --min-nodes=0 \
    --max-nodes=8 \
    --no-enable-autorepair

# 2. Check it.
gcloud container node-pools describe tpu-flex-0 --cluster=CLUSTER --location=us-east5 --format=json |
    pitstop flex check --topology 4x8 -
gcloud container node-pools describe tpu-flex-1 --cluster=CLUSTER --location=us-east5 --format=json |
    pitstop flex check --topology 4x8 -

# 3. The training. When a machine is lost, JobSet begins again, and pitcrew resumes from the last checkpoint.
# JobSet 0.10 or later has to be in the cluster: https://jobset.sigs.k8s.io/docs/installation/
# An older one does not know onJobFailureMessagePatterns, and the first lost machine would end the JobSet.
# Pitstop asks for a save before the 7 days end, and brings the training back once it has failed for good. For that it needs
#   in its policy file:   policies: {POLICY: {preset: spot, switches: {recreate_non_spot: yes}}}
#   in terraform.tfvars:  clusters = ["us-east5/CLUSTER"], allow = ["request_checkpoint", "restart", "recreate_non_spot"]
#   and in the cluster what pitstop gke rbac prints. terraform/README.md has each step, under Jobs of GKE.
kubectl apply -f - <<'EOF'
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: training
  labels:
    pitstop-policy: POLICY
  annotations:
    alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool
    pitstop-checkpoint-dir: gs://BUCKET/run
spec:
  failurePolicy:
    maxRestarts: 10
    rules:
      - name: wrongCall
        action: FailJobSet
        onJobFailureReasons:
          - PodFailurePolicy
        onJobFailureMessagePatterns:
          - 'failed with exit code (2|126|127) '
      - name: machineLost
        action: RestartJobSetAndIgnoreMaxRestarts
        onJobFailureReasons:
          - PodFailurePolicy
  replicatedJobs:
    - name: slice
      replicas: 2
      template:
        spec:
          completionMode: Indexed
          parallelism: 8
          completions: 8
          backoffLimit: 0
          podReplacementPolicy: Failed
          podFailurePolicy:
            rules:
              - action: FailJob
                onExitCodes:
                  containerName: training
                  operator: In
                  values: [2, 126, 127]
              - action: FailJob
                onPodConditions:
                  - type: DisruptionTarget
                    status: "True"
          template:
            spec:
              restartPolicy: Never
              terminationGracePeriodSeconds: 300
              nodeSelector:
                cloud.google.com/gke-flex-start: "true"
                cloud.google.com/gke-tpu-accelerator: tpu-v5-lite-podslice
                cloud.google.com/gke-tpu-topology: 4x8
              containers:
                - name: training
                  image: IMAGE
                  securityContext:
                    privileged: true
                  ports:
                    - containerPort: 8471
                    - containerPort: 8431
                  env:
                    - name: PITCREW_CLUSTER
                      value: us-east5/CLUSTER
                    - name: PITCREW_NAMESPACE
                      valueFrom:
                        fieldRef:
                          fieldPath: metadata.namespace
                    - name: PITCREW_POD
                      valueFrom:
                        fieldRef:
                          fieldPath: metadata.name
                    - name: PITCREW_JOB
                      valueFrom:
                        fieldRef:
                          fieldPath: metadata.labels['batch.kubernetes.io/job-name']
                    - name: PITCREW_JOB_UID
                      valueFrom:
                        fieldRef:
                          fieldPath: metadata.labels['batch.kubernetes.io/controller-uid']
                    - name: PITCREW_JOBSET
                      valueFrom:
                        fieldRef:
                          fieldPath: metadata.labels['jobset.sigs.k8s.io/jobset-name']
                  command: [pitcrew, run, '--checkpoint-dir=gs://BUCKET/run', --, python3, train.py]
                  resources:
                    requests:
                      google.com/tpu: 4
                    limits:
                      google.com/tpu: 4
EOF

# 4. Watch it. Pods wait as Pending until Google has the machines.
kubectl get jobset/training
kubectl get pods --selector=jobset.sigs.k8s.io/jobset-name=training --output=wide
kubectl get nodes --selector=cloud.google.com/gke-flex-start=true --label-columns=cloud.google.com/gke-tpu-topology

# 5. Clean up.
kubectl delete jobset/training
gcloud container node-pools delete tpu-flex-0 --cluster=CLUSTER --location=us-east5
gcloud container node-pools delete tpu-flex-1 --cluster=CLUSTER --location=us-east5
# If the cluster was made for this training alone:
# gcloud container clusters delete CLUSTER --location=us-east5
